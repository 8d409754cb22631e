"""The model of one file: what is bound where, what kind of thing every expression is, and in which order things happen.

Each layer knows only those below it; the test command checks that.

================  ====================================================================================================
``project``       sibling files: what an import from the same project is
``model``         the facade that ties everything below together for one file
``training``      the order of a training, and what goes wrong in it
``checkpoints``   state dicts on their way from a module to a file and back
``flow``          the vocabulary: which calls are events of a training
``modules``       module classes: what they register, hold, forget; which modes they know
``events``        what takes part in a training, and the steps it consists of
``graph``         the graph of a loss: what hangs on it, where it is cut, kept too long or written to
``construction``  which keys the state dict of a module has, from the way it is built
``expressions``   what an expression is: its value
``names``         scopes, functions and classes: what a name is bound to at a place
``files``         what the disk says about the files of a project
``values``        the kinds of thing there are, and how two of them join
================  ====================================================================================================
"""
