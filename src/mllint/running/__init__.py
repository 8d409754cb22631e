"""From paths to outcomes: many files, on many cores, and nothing twice.

``discovery`` finds the files, ``runner`` lints and mends one after the other (``stack`` gives it room), ``batch`` does
so with many: what was found before comes from the ``cache`` (``memory`` is one run's view of it), and a ``pool`` of
processes shares the rest where that pays (``shares``). ``writer`` puts mended files back, ``baseline`` takes out what
is accepted for now.
"""
