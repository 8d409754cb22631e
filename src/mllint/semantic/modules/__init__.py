"""Module classes and their instances.

- what a constructor sets up: ``initialization``, ``registering``, ``containers``, ``contents``, ``plain_tensors``,
  ``fates``, ``own_operations``, ``records``, ``inputs``, ``weights``, ``unused``, ``fresh``, ``rounds``, ``trails``;
  what it loses again: ``lost_parameters``, ``unsaved_draws``, ``carried_state``, ``fitted_state``; what it does not
  take up: ``unregistered``; copies that share the weights: ``shallow_copies``; what others may look after:
  ``handed_over``, ``trained_by_hand``, ``never_moved``; what nobody fills: ``never_filled``
- what a forward pass makes: ``made_in_forward``, ``called_elements``, ``made_on_cpu``, ``ways_to_tensors``,
  ``dropouts``, ``single_values``, ``batches``; what it changes in place although ``backward()`` needs it:
  ``saved_changes``; buffers that keep what it adds to them with its graph: ``running_buffers``; backward passes that
  come too late: ``second_passes``
- training and evaluation mode: ``modes``, ``mode_layers``, ``drop_rates``, ``known_rates``, ``made_with``,
  ``part_makers``, ``switched_off``
- keys of the state dict: ``module_keys``; modules without hooks: ``unhooked``, ``called_plainly``; objects that only
  have attributes of the same names: ``other_objects``; things that callers give: ``from_callers``
"""
