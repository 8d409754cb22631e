"""From bytes to a tree and back to places: decoding, parsing, the walk, spans on demand, suppression comments.

``former`` reads what only a former Python can run.
"""
