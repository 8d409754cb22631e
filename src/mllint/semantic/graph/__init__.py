"""The graph that autograd records, as far as the source shows it.

- where none is recorded: ``gradients``; what is no part of one: ``data_sources``, ``flags``, ``flag_names``,
  ``state_flags``, leaves (``leaves``, ``lost_leaves``, ``never_learned``, ``one_way_flags``, ``rebinding``,
  ``frozen_updates``, ``output_buffers``)
- a loss and what it hangs on: ``losses``, ``backward``, ``graph_slice``, ``depth``, ``class_slices``, ``rounds``,
  ``filled``, ``settings``, ``looked_at``, ``dependence``, ``cuts``, ``taken_off``, ``constant_terms``,
  ``gradient_terms``, ``dead_classes``, ``differentiability``
- graphs that are kept: ``accumulation``, ``additions``, ``meters``, ``held_graphs``, ``terms``, ``short_lived``,
  ``spent_in_calls``, ``hidden_state``, ``kept_state``, ``statefulness``, ``spent_parts``
- what is changed in place although it is needed as it was: ``in_place``, ``saved``, ``residuals``, ``weighted_ways``;
  whether it hangs on a graph in any call: ``given_graphs``, ``runs_of_class``
- tensors and where they are: ``indexing``, ``devices``, ``nan``, ``placement``, ``discarded``, ``needless``,
  ``unmissed``, ``spread``, ``consumers``, ``used_up``, ``tensor_uses``, ``whole_numbers``
"""
