"""From bytes to a tree and back to places: decoding, parsing, the walk, spans on demand, suppression comments.

``former`` reads what only a former Python can run. ``notebook`` knows the format of notebooks, ``ipython`` what their
cells have beside Python, and ``cells`` makes them one source.
"""
