"""Comments that silence findings: flake8's ``noqa`` exactly as flake8 reads it, and mllint's own.

============================================  ===============================================================
``# noqa``, ``# noqa: ML101``                 the physical line, or the whole of a multi-line string or of a
                                              backslash continuation (flake8's "noqa line mapping")
``# flake8: noqa``                            the file (flake8 does not even show it to plugins)
``# mllint: ignore[ML101] reason``            trailing: its physical line; alone above a statement: the whole
                                              first logical line of that statement
``# mllint: file-ignore[ML101] reason``       the file
============================================  ===============================================================
"""
