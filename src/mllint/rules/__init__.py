"""The rules, one a file, in a folder a topic. ``mllint.registry`` finds them; there is no list to keep."""
