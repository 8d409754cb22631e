"""Facts about torch, paddle and their neighbours: typed tables, no code that looks at source.

``torch_tables``, ``paddle_tables`` and ``neighbour_tables`` are generated from installed packages
(``python -m mllint._dev knowledge``); ``facts`` holds what a person wrote, each with its source. ``lookup`` answers
questions over all of them.
"""
