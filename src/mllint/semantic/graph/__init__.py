"""The graph that autograd records, as far as the source shows it.

- where none is recorded: ``gradients``; what is no part of one: ``data_sources``, ``flags``, ``called_flags``,
<<<<<<< HEAD
  ``used_as_modules``, leaves (``leaves``, ``lost_leaves``, ``kept_functions``, ``rebinding``, ``frozen_updates``)
=======
  ``state_flags``, leaves (``leaves``, ``lost_leaves``, ``kept_functions``, ``rebinding``, ``frozen_updates``)
>>>>>>> order
- a loss and what it hangs on: ``losses``, ``backward``, ``graph_slice``, ``class_slices``, ``rounds``, ``filled``,
  ``settings``, ``looked_at``, ``dependence``, ``cuts``, ``made_of_data``, ``taken_off``, ``constant_terms``,
  ``loss_classes``, ``dead_classes``, ``differentiability``
- graphs that are kept: ``accumulation``, ``additions``, ``meters``, ``held_graphs``, ``terms``, ``short_lived``,
  ``hidden_state``, ``kept_state``, ``statefulness``, ``last_added``, ``spent_parts``, ``one_number``, ``reported``
- what is changed in place although it is needed as it was: ``in_place``, ``saved``, ``residuals``,
  ``block_options``; whether it hangs on a graph in any call: ``given_graphs``, ``spent_sources``, ``runs_of_class``,
  ``weighted_ways``
- tensors and where they are: ``indexing``, ``devices``, ``nan``, ``placement``, ``discarded``, ``needless``,
  ``unmissed``, ``consumers``, ``used_up``, ``tensor_uses``, ``whole_numbers``
"""
