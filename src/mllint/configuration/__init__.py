"""What a project wants of mllint, from its files to values.

``settings`` are the values, ``table`` what ``[tool.mllint]`` may say, ``files`` which configuration holds for a file,
``policy`` what settings make of a finding, ``patterns`` how paths are matched, ``requirements`` which versions of the
frameworks a project asks for.
"""
