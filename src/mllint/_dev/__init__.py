"""Tools for those who work on mllint: ``python -m mllint._dev COMMAND``.

Nothing else imports this package.
"""
