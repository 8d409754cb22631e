"""What a rule is: metadata, and small stateless generator functions subscribed to what they visit.

A rule module holds one ``rule = Rule(...)`` and its subscribed functions. The file's name is the rule's name, the
file's docstring is the rule's documentation page. See ``docs/contributing.md``.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst
import msgspec

from mllint.diagnostics import Applicability, Severity
from mllint.edits import NodeFix

if TYPE_CHECKING:
    from mllint.context import Context


class Finding(msgspec.Struct, frozen=True):
    """What a rule found.

    ``node`` is the expression or statement that is wrong; the finding is reported at its first line. ``message`` and
    ``help`` replace the rule's own where the place allows a more exact sentence. ``fix`` is called only when somebody
    wants the fix; ``None`` from it means that no sound edit exists at this place.
    """

    node: cst.CSTNode
    message: str | None = None
    help: str | None = None
    fix: Callable[[], NodeFix | None] | None = None


Handler: TypeAlias = "Callable[[Any, Context], Iterator[Finding]]"
Shape: TypeAlias = Callable[[Any], bool]
"""A test of a node by itself: what it looks like, whatever it means."""


class Subscription(msgspec.Struct, frozen=True):
    """One handler and what it visits.

    Exactly one of the three is set: ``node_types`` (every node of these types), ``methods`` (calls ``x.name(...)``
    with these names), ``callees`` (calls whose callee resolves to one of these qualified names).

    ``mentions`` are words of which at least one stands in the source wherever the handler can yield anything; they
    feed the gate. Empty means that no such word is known. The handler sees only nodes of which ``shape`` holds.
    """

    handler: Handler
    node_types: tuple[type[cst.CSTNode], ...] = ()
    methods: frozenset[str] = frozenset()
    callees: frozenset[str] = frozenset()
    mentions: frozenset[str] = frozenset()
    shape: Shape | None = None


@dataclass(slots=True)
class Rule:
    """Metadata of one rule and its subscriptions.

    ``frameworks`` are the packages the rule knows; a file that mentions none of them is never parsed for it.
    ``applicability`` is the most trusted fix the rule may offer, ``None`` when it offers none.
    ``since`` is the mllint version that introduced the rule. ``by_default`` is false where fewer than nine in ten
    of its findings were right in code that nobody had looked at before.
    """

    code: str
    message: str
    help: str
    frameworks: frozenset[str]
    since: str
    applicability: Applicability | None = None
    by_default: bool = field(default=True, kw_only=True)
    module: str = field(default="", kw_only=True)
    subscriptions: list[Subscription] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self.module:
            self.module = sys._getframe(2).f_globals["__name__"]

    @property
    def name(self) -> str:
        """The kebab-case name: the rule's identity."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def topic(self) -> str:
        """The folder that the rule stands in."""
        return self.module.split(".")[-2]

    @property
    def severity(self) -> Severity:
        """How bad a finding is unless the settings say otherwise."""
        return Severity.INFO if self.is_opinion else Severity.WARNING

    @property
    def docs(self) -> str:
        """The documentation page, as written in the rule's file (Markdown)."""
        return sys.modules[self.module].__doc__ or ""

    @property
    def is_opinion(self) -> bool:
        """Whether the rule is advice (ML9xx)."""
        return self.code.startswith("ML9")

    @property
    def is_default(self) -> bool:
        """Whether the rule is on unless something is said of it; otherwise it takes more than the bare prefix."""
        return self.by_default and not self.is_opinion

    def on(
        self, *node_types: type[cst.CSTNode], mentions: tuple[str, ...] = (), shape: Shape | None = None
    ) -> Callable[[Handler], Handler]:
        """Subscribe a handler to every node of the given types, or to those of a shape.

        Most nodes are not what a rule waits for. A shape that says so is asked once for all rules that name it, and
        costs a tenth of a handler that is called in vain.
        """
        return self._subscribe(node_types=node_types, mentions=frozenset(mentions), shape=shape)

    def on_method(self, *names: str) -> Callable[[Handler], Handler]:
        """Subscribe a handler to calls spelled ``receiver.name(...)`` for any of the names."""
        return self._subscribe(methods=frozenset(names), mentions=frozenset(names))

    def on_call(self, *qualified_names: str) -> Callable[[Handler], Handler]:
        """Subscribe a handler to calls whose callee *is* one of the qualified names, however it is spelled."""
        # An alias keeps the name somewhere in the file: in the import or in the attribute.
        words = frozenset(name.rpartition(".")[2] for name in qualified_names)
        return self._subscribe(callees=frozenset(qualified_names), mentions=words)

    def _subscribe(self, **what: Any) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            self.subscriptions.append(Subscription(handler, **what))
            return handler

        return register
