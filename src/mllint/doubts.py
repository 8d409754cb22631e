"""What makes a fix unsafe, whatever its rule says."""

from collections.abc import Iterable

import msgspec

from mllint.diagnostics import Applicability, Fix
from mllint.edits import NodeEdit
from mllint.syntax.source import Source


def demoted(fix: Fix, edits: Iterable[NodeEdit], source: Source) -> Fix:
    """The fix as it may be trusted: a safe one is only unsafe if it deletes a comment, or may stop the program."""
    if fix.applicability is not Applicability.SAFE:
        return fix
    if any(edit.is_doubtful for edit in edits) or _loses_comment(fix, source):
        return msgspec.structs.replace(fix, applicability=Applicability.UNSAFE)
    return fix


def _loses_comment(fix: Fix, source: Source) -> bool:
    if not any("#" in source.text[edit.start : edit.end] for edit in fix.edits):
        return False
    for comment in source.layout.comments:
        start = source.line_starts[comment.row - 1] + comment.column
        for edit in fix.edits:
            is_touched = edit.start < start + len(comment.text) and start < edit.end
            if is_touched and comment.text not in edit.content:
                return True
    return False
