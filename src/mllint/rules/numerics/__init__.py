"""ML5xx: losses, NaN, stability."""
