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
_SUPPRESSION = re.compile(rb"(?i:#\s*noqa)[^\r\n]*\bML[0-9]")
_NOTEBOOK = ".ipynb"
_OBJECT = re.compile(rb"\A(?:\xef\xbb\xbf)?[ \t\r\n]*+\{")


def may_concern_rules(data: bytes, path: str = "") -> bool:
    """Whether a file with these bytes has to be shown to the rules. Never wrongly false.

    Of a notebook, which is known by its ``path``, only the cells count: what they gave may be large.
    """
    if is_notebook(data, path):
        from mllint.syntax.notebook import text_of_cells

        data = text_of_cells(data)
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
    if b"mllint:" in data:
        return True
    # In what is encoded in letters (the images of a notebook), `ML` stands everywhere.
    return b"ML" in data and b"noqa" in data.lower() and _SUPPRESSION.search(data) is not None


def is_notebook(data: bytes, path: str) -> bool:
    """Whether bytes are those of a notebook: by the name, and because a notebook is an object of JSON.

    Under such a name an editor also shows the cells of one, put together as a program.
    """
    return path.endswith(_NOTEBOOK) and _OBJECT.match(data) is not None
