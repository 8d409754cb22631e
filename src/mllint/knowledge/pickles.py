"""What `torch.load` does not read with ``weights_only``, the default since PyTorch 2.6."""

OBJECTS_OF_NUMPY = frozenset({"numpy.random.get_state", "numpy.random.default_rng", "numpy.random.RandomState"})
"""What gives a generator of NumPy, or its state, which has an array in it; Python's state is plain numbers (run)."""
