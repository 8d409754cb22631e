"""The order of a training, and what goes wrong in it.

- from statements to runs: ``relevance``, ``unfolding``, ``callers``, ``unseen_callers``, ``runs``, ``paths``,
  ``kept_calls``, ``touched``, ``guards``, ``managed``, ``passes_out_of_sight``; ``nearby`` for the usual case
- gradients: ``zeroing``, ``cleared_early``, ``one_sided``, ``own_steps``, ``forgetful_callers``, ``foreign_gradients``,
  ``left_gradients``, ``used_again``, ``updates_by_hand``, ``gradient_rounds``, ``measured``, ``clipping``,
  ``scaling``, ``unscaling``, ``partly_unscaled``, ``never_computed``; ``holders`` of what they are about;
  ``stale_weights``, which a step has changed too early; ``forgotten_networks``, ``late_parts``, ``idle_optimizers``,
  ``all_frozen``, ``looked_through``
- learning rates: ``schedulers``, ``schedulers_of_none``, ``held_schedulers``, ``schedules``, ``first_factors``,
  ``rates``, ``lambda_rates``, ``rates_by_hand``
- modes and evaluations: ``training_modes``, ``called_modules``, ``made_in_mode``, ``evaluation``, ``in_training_mode``,
  ``left_in_evaluation``, ``put_back``, ``sisters``, ``trained_for_evaluation``, ``undone_switches``,
  ``single_evaluations``, ``recorded_passes``, ``single_passes``, ``inferences``, ``kept_networks``,
  ``kept_inferences``, ``loaded_weights``, ``pretrained_parts``, ``outputs``, ``wanted_gradients``, ``adversaries``,
  ``data_loops``, ``data_rounds``, ``pieces``, ``turns``, ``handed_on``, ``left_as_comments``, ``frozen``,
  ``made_up``, ``few_rounds``
"""
