"""Who visits what in a file: derived once from the subscriptions of the chosen rules.

Most subscriptions come to nothing in most files. So a file's rules are found by what the file has: the words of its
text, the words its calls end in, and the shapes of its nodes, each asked once for all rules that wait for it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import libcst as cst
import msgspec

from mllint.context import Context
from mllint.rule import Handler, Rule, Subscription
from mllint.syntax.walk import Tree

Visitor: TypeAlias = tuple[Rule, Handler]


class Dispatch(msgspec.Struct, frozen=True):
    """The subscriptions of a set of rules by what they wait for."""

    of_nodes: tuple[tuple[type[cst.CSTNode], tuple[str, ...], Rule, Subscription], ...]
    """By the type of the node, and the words beside which it is visited: short ones first, which most files have."""
    of_methods: dict[str, tuple[Visitor, ...]]
    of_callees: dict[str, tuple[Visitor, ...]]
    callee_words: frozenset[str]
    """The last segments of all names in ``of_callees``."""

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> "Dispatch":
        """The tables of the rules, in their order."""
        of_nodes: list[tuple[type[cst.CSTNode], tuple[str, ...], Rule, Subscription]] = []
        of_methods: dict[str, list[Visitor]] = {}
        of_callees: dict[str, list[Visitor]] = {}
        for rule in rules:
            for subscription in rule.subscriptions:
                visitor = (rule, subscription.handler)
                words = tuple(sorted(subscription.mentions, key=lambda word: (len(word), word)))
                of_nodes += [(node_type, words, rule, subscription) for node_type in subscription.node_types]
                for method in sorted(subscription.methods):
                    of_methods.setdefault(method, []).append(visitor)
                for callee in sorted(subscription.callees):
                    of_callees.setdefault(callee, []).append(visitor)
        return cls(
            tuple(of_nodes),
            {key: tuple(visitors) for key, visitors in of_methods.items()},
            {key: tuple(visitors) for key, visitors in of_callees.items()},
            frozenset(name.rpartition(".")[2] for name in of_callees),
        )

    def visits(self, tree: Tree, context: Context) -> Iterator[tuple[Rule, Handler, Sequence[cst.CSTNode]]]:
        """Which handlers visit which nodes of a file, the nodes of each in document order."""
        yield from self._visits_of_nodes(tree, context.source_text)
        calls = tree.calls_by_word
        for word, visitors in self.of_methods.items():
            found = [call for call in calls.get(word, ()) if call.func.__class__ is cst.Attribute]
            if found:
                for rule, handler in visitors:
                    yield rule, handler, found
        for call in self._calls_to_resolve(tree, context):
            qualified = context.qualified_name(call.func)
            if qualified is not None:
                for rule, handler in self.of_callees.get(qualified, ()):
                    yield rule, handler, (call,)

    def _visits_of_nodes(self, tree: Tree, text: str) -> Iterator[tuple[Rule, Handler, Sequence[cst.CSTNode]]]:
        known: dict[str, bool] = {}
        # Each thing that is written, once: the same words are in it, and it is a third as long.
        text = "\n".join(set(text.split()))
        for node_type, words, rule, subscription in self.of_nodes:
            # Never a node without the words, however few there are: what the gate keeps out when a rule is selected
            # alone would be found beside others.
            if not tree.count(node_type) or not _is_any_in(words, text, known):
                continue
            nodes = tree.of_shape(node_type, subscription.shape)
            if nodes:
                yield rule, subscription.handler, nodes

    def _calls_to_resolve(self, tree: Tree, context: Context) -> Sequence[cst.Call]:
        """The calls whose callee may be one of the functions that rules wait for."""
        calls = tree.calls_by_word
        if not self.callee_words:
            return ()
        if not self.callee_words.isdisjoint(context.imported_words):
            # Under an alias a function has another name, and so has what is bound to it.
            return [call for call in tree.by_type.get(cst.Call, ()) if isinstance(call.func, (cst.Name, cst.Attribute))]
        return [call for word in sorted(self.callee_words) for call in calls.get(word, ())]


def _is_any_in(words: tuple[str, ...], text: str, known: dict[str, bool]) -> bool:
    """Whether a text has one of some words; if there are none, that is not known."""
    for word in words:
        is_there = known.get(word)
        if is_there is None:
            is_there = known[word] = word in text
        if is_there:
            return True
    return not words
