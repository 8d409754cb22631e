"""What a name is bound to at a place, and what becomes of what it is bound to.

- control flow and bindings: ``blocks``, ``scopes``, ``inner_bindings``, ``conditions``
- functions and classes: ``definitions``, ``classes``, ``receivers``, ``foreign_reads``, ``named_methods``;
  ``spelling`` of their names
- what happens to a thing under its name: ``uses``, ``writes``, ``changes``; ``in_use``: which functions are
  named at all, ``wrappers``: what decorates them and keeps nothing
- ``remembered``: questions about a file that are worked out once
"""
