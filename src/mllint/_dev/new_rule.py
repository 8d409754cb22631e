"""Begin a rule: its file, its fixture, its evidence test, to be rewritten one by one."""

import argparse
import re
import sys
from pathlib import Path

import mllint
from mllint._dev.topics import Topic, topic_of

_RULE = '''"""## What it does

Finds calls of `torch.replace_me`.

## Why is this bad?

Say what happens at run time, in which versions: silence, an error, NaN, memory that grows. What
you claim here, the evidence test shows.

## Example

```python
import torch

value = torch.replace_me()
```

## Use instead

```python
import torch

value = torch.something_else()
```

## What it leaves alone

All other calls. Say what looks like the defect and is right.

## Fix safety

No fix is offered. Say why, or what makes the fix safe.

## References

- [PyTorch documentation](https://docs.pytorch.org/docs/stable/index.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule

rule = Rule(
    code="{code}",
    message="`torch.replace_me` is called",
    help="write `torch.something_else()`",
    frameworks=frozenset({{"torch"}}),
    since="{version}",
)


@rule.on_call("torch.replace_me")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call itself: its first row is where a suppression comment would stand."""
    yield Finding(call)
'''

_FIXTURE = '''"""What `{name}` finds, and what looks like it and is right."""

import torch

value = torch.replace_me()  # expect: {code}
other = torch.something_else()  # ok: {code} another function
'''

_EVIDENCE = '''"""What `{name}` claims about run time, in the real frameworks."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_what_the_bad_form_does(torch: Any) -> None:
    pytest.fail("run the bad and the good form, and assert what each does")
'''


def main(arguments: list[str]) -> int:
    """Write the three files; 2 if the code or the name cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m mllint._dev new-rule", description=__doc__)
    parser.add_argument("code", help="ML and three digits; the first digit is the topic")
    parser.add_argument("name", help="kebab-case; names the bad pattern")
    parser.add_argument("--topic", help="the folder; must fit the code")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[3])
    options = parser.parse_args(arguments)
    problem = _problem(options.code, options.name, options.topic)
    if not (options.root / "tests").is_dir():
        problem = f"`{options.root}` is no copy of the repository (`--root`)"
    files = {} if problem else _files(options.root, options.code, options.name)
    if not problem and (taken := [path for path in files if path.exists()]):
        problem = f"`{taken[0]}` exists already"
    if problem:
        print(f"new-rule: {problem}", file=sys.stderr)
        return 2
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(path.relative_to(options.root))
    _make_package(options.root, topic_of(options.code))
    print("next: pytest tests/test_rules.py --snapshot-update; python -m mllint._dev docs")
    return 0


def _make_package(root: Path, topic: Topic) -> None:
    """The folder of a topic that has no rule yet is not yet a package."""
    package = root / "src/mllint/rules" / topic.folder / "__init__.py"
    if not package.exists():
        package.write_text(f'"""{topic.block}: {topic.about}."""\n', encoding="utf-8")


def _problem(code: str, name: str, topic: str | None) -> str | None:
    """Why a rule cannot be called so; ``None`` if it can."""
    if re.fullmatch(r"ML[1-9]\d\d", code) is None:
        return f"`{code}` is not `ML` and three digits"
    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name) is None:
        return f"`{name}` is not kebab-case"
    if name.startswith(("no-", "avoid-", "use-")):
        return f"`{name}` must name the bad pattern"
    if topic is not None and topic != topic_of(code).folder:
        return f"`{code}` belongs to the topic `{topic_of(code).folder}`"
    return None


def _files(root: Path, code: str, name: str) -> dict[Path, str]:
    module = name.replace("-", "_")
    words = {"code": code, "name": name, "version": mllint.__version__}
    return {
        root / "src/mllint/rules" / topic_of(code).folder / f"{module}.py": _RULE.format(**words),
        root / "tests/fixtures/rules" / name / "basic.py": _FIXTURE.format(**words),
        root / "tests/evidence" / f"test_{module}.py": _EVIDENCE.format(**words),
    }
