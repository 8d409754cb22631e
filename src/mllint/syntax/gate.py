"""The first gate: may these bytes concern any rule at all?

It is asked before the rules, and with them LibCST, are even imported, so that a file without a
framework costs next to nothing. It may only be more generous than the gate of the rules themselves
(``RuleSet.may_fire``); a test compares the two over all rules.
"""

import re

_FRAMEWORKS = (b"torch", b"paddle", b"transformers")
SIGNS = ("def forward(", "zero_grad", "clear_grad", "state_dict()", "eval()")
"""What a file of a project has that need not name its framework: a module whose base class stands in another file, a
training of a network that is made in another, what keeps the best state of one, and what evaluates one."""
_WORDS = (*_FRAMEWORKS, *(sign.encode() for sign in SIGNS))
_SUPPRESSION = re.compile(rb"mllint:|(?i:#\s*noqa)[^\r\n]*\bML[0-9]")


def may_concern_rules(data: bytes) -> bool:
    """Whether a file with these bytes has to be shown to the rules. Never wrongly false."""
    if any(word in data for word in _WORDS):
        return True
    # What is wrong with numpy alone is, so far, how NaN is compared.
    if b"numpy" in data and b"nan" in data.lower():
        return True
    return may_hold_suppressions(data)


def names_framework(data: bytes) -> bool:
    """Whether a framework is named in these bytes: a file without one that cannot be read is somebody else's."""
    return any(word in data for word in _FRAMEWORKS)


def may_hold_suppressions(data: bytes) -> bool:
    """Whether a file with these bytes may silence rules of mllint in a comment. Never wrongly false."""
    return (b"mllint:" in data or b"ML" in data) and _SUPPRESSION.search(data) is not None
