"""The order of a training, and what goes wrong in it.

- from statements to runs: ``relevance``, ``unfolding``, ``callers``, ``unseen_callers``, ``runs``, ``paths``,
  ``decorators``, ``kept_calls``, ``touched``, ``guards``, ``independence``; ``nearby`` for the usual case
- gradients: ``zeroing``, ``one_sided_clearing``, ``own_steps``, ``forgetful_callers``, ``foreign_gradients``,
  ``updates_by_hand``, ``gradient_rounds``, ``clipping``, ``scaling``, ``unscaling``, ``scaled_clips``, ``minimizing``,
  ``never_computed``; ``holders`` of what they are about; ``stale_weights``, which a step has changed too early, and the
  same ``stale_through_helpers``; ``forgotten_networks``, ``lost_groups``, ``idle_optimizers``
- learning rates: ``schedulers``, ``held_schedulers``, ``own_schedulers``, ``one_sided_schedules``, ``schedules``,
  ``first_factors``, ``rates``, ``lambda_rates``, ``late_schedules``
- modes and evaluations: ``training_modes``, ``unseen_switches``, ``called_modules``, ``made_in_mode``, ``told_modes``,
  ``evaluation``, ``in_training_mode``, ``left_in_evaluation``, ``put_back``, ``sisters``, ``trained_for_evaluation``,
  ``traces``, ``single_evaluations``, ``inferences``, ``loaded_weights``, ``forgotten_beside``, ``ready_made``,
  ``pretrained_parts``, ``outputs``, ``wanted_gradients``, ``adversaries``, ``loaders``, ``data_loops``,
  ``data_rounds``, ``pieces``, ``turns``, ``handed_on``, ``written``, ``frozen``, ``made_up``, ``left_over``, ``copies``
"""
