"""ML3xx: the order and the mode of training and evaluation."""
