"""The model of one file: what is bound where, and what kind of thing every expression is.

===============  ====================================================================================================
``values``       the kinds of thing there are, and how two of them join
``scopes``       scopes, bindings, and which bindings reach a place (control flow)
``definitions``  functions and classes of the file: parameters, returns, bases, attributes
``inference``    the value of an expression
``calls``        what a call gives back
``gradients``    where gradients are switched off
``project``      sibling files: what an import from the same project is
``model``        the facade that ties these together for one file
===============  ====================================================================================================
"""
