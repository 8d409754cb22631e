"""What a constructor builds, found out without running it.

===============  ====================================================================================================
``state_keys``   sets of keys of which only a part may be known, and how two of them compare
``parts``        the abstract values, among them a module with its parameters, buffers and submodules
``operators``    operators, comparisons and truth of such values
``evaluation``   the value of an expression
``constants``    what a name or an attribute always stands for
``libraries``    layers, containers and wrappers of torch and paddle
``calls``        built-in functions, methods of modules, lists, dicts and strings
``statements``   statements
``builder``      functions and classes of the project
===============  ====================================================================================================
"""
