"""What an expression is: its value, derived from what binds the names in it.

- ``inference`` asks the others: ``calls``, ``attributes``, ``arguments``, ``returns``, ``iteration``, ``module_lists``,
  ``tensors``, ``module_outputs``, ``passed_graph``, ``imports``, ``annotations``, ``narrowed``, ``encodings``,
  ``options`` (of argparse), ``picked`` (``getattr(nn, name)``), ``tables`` (``MODELS[name]``); and remembers:
  ``derivation``, also of things that are defined by each other
- where that says nothing, what the use of a thing tells: ``evidence``; and its spelling, never as a proof: ``hints``
- questions about one expression: ``alternatives``, ``sources``, ``new_results``, ``truth``; ``quantities``: numbers of
  which only the sign is known; ``called_objects``, which are no functions
"""
