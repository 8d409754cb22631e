"""What the command does: its ``options`` and their values (``option_values``), and what each makes of a run.

``checking`` checks, mends and prints; ``inspection`` shows what would be done; ``annotate`` writes suppression
comments; ``watch`` goes on until it is stopped.
"""
