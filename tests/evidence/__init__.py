"""What the rules claim about run time, shown in the real frameworks."""
