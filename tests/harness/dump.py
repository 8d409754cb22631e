"""Print everything that is found and fixed in every seventh fixture: run with two hash seeds, compared."""

import sys

import msgspec

from harness.cases import all_cases
from mllint.fixer import fix

EVERY = 7
"""Of how many fixtures one is enough."""


def main() -> None:
    """One JSON line a fixture."""
    for case in all_cases()[::EVERY]:
        result = case.lint()
        fixed = fix(case.data, str(case.path), case.rules, unsafe=True, project=case.project())
        sys.stdout.write(msgspec.json.encode([case.id, result, fixed]).decode() + "\n")


if __name__ == "__main__":
    main()
