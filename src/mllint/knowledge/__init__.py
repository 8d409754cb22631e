"""Facts about torch, paddle and their neighbours: typed tables, no code that looks at source.

``torch_tables`` and ``paddle_tables`` are generated from the installed frameworks (``python -m mllint._dev knowledge``);
``facts`` holds what a person wrote, each with its source. ``lookup`` answers questions over both.
"""
