"""ML1xx: values, devices, dtypes."""
