"""What the rules about the order of a training find does not depend on how the training is written down."""

import re
import shutil
from itertools import islice
from pathlib import Path

import pytest

from harness.cases import Case, all_cases, observed, read_markers
from harness.metamorphic import MOVES, REWRITINGS, SIBLING, has_distant_markers
from harness.thinning import thinned
from mllint.engine import lint
from mllint.semantic.project import Project

_ORDER = re.compile(r"ML3(0[1-9]|1\d)")
_OFF = re.compile(r"#\s*metamorphic: off, because \S+|#\s*metamorphic\[([\w-]+)\]: off, because \S+")

_OF_ONE_BODY = frozenset({"ML304", "ML309", "ML313", "ML314", "ML315", "ML316", "ML318"})
"""Rules about what stands in one body, whatever happened before: what they say may change with the body."""

_cases = [case for case in all_cases() if _ORDER.fullmatch(case.rule.code)]


def _text(case: Case) -> str:
    return case.data.decode()


def _is_off(case: Case, text: str, rewriting: str) -> bool:
    """Whether a fixture says why a rewriting would make another program of it."""
    if rewriting in MOVES and case.rule.code in _OF_ONE_BODY:
        return True
    return has_distant_markers(text) or any(match[1] in (None, rewriting) for match in _OFF.finditer(text))


@pytest.mark.parametrize(("case", "rewriting"), thinned(_cases, list(REWRITINGS), every=18))
def test_findings_stay_the_same(case: Case, rewriting: str, tmp_path: Path) -> None:
    text = _text(case)
    rewritten = None if _is_off(case, text, rewriting) else REWRITINGS[rewriting](text)
    if rewritten is None:
        return
    root = tmp_path / case.root.name
    if case.stands_alone:
        root.mkdir()
    else:
        shutil.copytree(case.root, root, ignore=shutil.ignore_patterns("__pycache__"))
    path = root / case.path.relative_to(case.root)
    files = {path: rewritten.text}
    if rewritten.sibling is not None:
        files[path.with_name(f"{SIBLING}.py")] = rewritten.sibling
    for file, content in files.items():
        file.write_text(content)
    for file, content in files.items():
        markers = read_markers(content.encode(), str(file))
        result = lint(content.encode(), str(file), case.rules, targets=case.targets, project=Project(root))
        assert observed(result.diagnostics) == [(m.row, m.code) for m in markers.expected], content


@pytest.mark.parametrize("name", REWRITINGS)
def test_every_rewriting_moves_expectations(name: str) -> None:
    """No rewriting passes because it has nothing to do."""
    expecting = (case for case in _cases if case.markers.expected)
    texts = (text for case in expecting if not _is_off(case, text := _text(case), name))
    moved = (text for text in texts if REWRITINGS[name](text) is not None)
    assert len(list(islice(moved, 5))) == 5
