"""``python -m mllint``: the same program as ``mllint``."""

from mllint.cli import main

if __name__ == "__main__":
    main()
