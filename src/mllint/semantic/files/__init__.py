"""The files around a file: where the project begins (``project_root``), what the disk says of it (``disk``), who asked
what (``reads``), which names its files mention (``mentions``), and which of them are tests (``testing``).
"""
