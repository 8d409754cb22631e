"""The first gate: may these bytes concern any rule at all?

It is asked before the rules, and with them LibCST, are even imported, so that a file without a
framework costs next to nothing. It may only be more generous than the gate of the rules themselves
(``RuleSet.may_fire``); a test compares the two over all rules.
"""

_FRAMEWORKS = (b"torch", b"paddle", b"transformers")


def may_concern_rules(data: bytes) -> bool:
    """Whether a file with these bytes has to be shown to the rules. Never wrongly false."""
    if any(word in data for word in _FRAMEWORKS):
        return True
    # What is wrong with numpy alone is, so far, how NaN is compared.
    return b"numpy" in data and b"nan" in data.lower()
