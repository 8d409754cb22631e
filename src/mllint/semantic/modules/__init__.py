"""Module classes and their instances.

- what a constructor sets up: ``initialization``, ``containers``, ``contents``, ``plain_tensors``, ``plain_lists``,
  ``own_operations``, ``records``, ``inputs``, ``weights``, ``unused``, ``replaced``, ``fresh``, ``rounds``, ``trails``;
  what it loses again: ``lost_registrations``, ``lost_parameters``, ``unsaved_draws``, ``carried_state``,
  ``fitted_state``, ``late_buffers``, of which ``unregistered`` finds the first and ``unregistered_words`` speaks; what
  others may look after: ``handed_over``, and who they are: ``askers``
- what a forward pass makes: ``made_in_forward``, ``made_on_cpu``, ``ways_to_tensors``, ``dropouts``, ``single_values``,
  ``batches``; what it changes in place although ``backward()`` needs it: ``saved_changes``; buffers that keep what it
  adds to them with its graph: ``running_buffers``; backward passes that come too late: ``second_passes``
- training and evaluation mode: ``modes``, ``mode_layers``, ``library_modes``, ``drop_rates``, ``made_with``,
  ``last_mode``, ``switched_off``
- keys of the state dict: ``module_keys``; objects that hand on to a module: ``stand_ins``; without hooks: ``unhooked``;
  files that replace what it runs: ``replaced_forward``;
  that only have attributes of the same names: ``other_objects``
"""
