"""Sphinx: the pages are Markdown (MyST), the theme is furo."""

from importlib.metadata import version as installed_version

project = "mllint"
copyright = "2026, The mllint developers"
version = release = installed_version("flake8-mllint")

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"mllint {release}"
