"""Networks of the examples."""
