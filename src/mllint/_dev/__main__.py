"""``python -m mllint._dev COMMAND ...``: one module a command, imported only when asked for.

Every command's module has ``main(arguments) -> int``; its docstring's first line is its help.
"""

import importlib
import sys

COMMANDS = {
    "bench": "mllint._dev.bench",
    "corpus": "mllint._dev.corpus",
    "docs": "mllint._dev.docs",
    "knowledge": "mllint._dev.knowledge",
    "new-rule": "mllint._dev.new_rule",
}


def main(arguments: list[str]) -> int:
    """Run the command that the first argument names; its exit code, or 2 where there is none."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: python -m mllint._dev {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    module = importlib.import_module(COMMANDS[arguments[0]])
    code: int = module.main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
