"""ML4xx: modules, parameters, checkpoints and state dicts."""
