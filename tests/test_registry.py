"""What the metadata of every rule promises: names, codes, topics, pages, tests."""

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.style import assert_style
from mllint._dev.rule_page import RulePage
from mllint._dev.topics import TOPICS, topic_of
from mllint.registry import RuleSet, all_rules, select
from mllint.rule import Rule
from mllint.selectors import UnknownSelectorError, listed_rules

TESTS = Path(__file__).parent
FRAMEWORKS = {"torch", "paddle", "numpy", "transformers"}

every_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)


def test_codes_and_names_are_unique() -> None:
    rules = all_rules()
    assert rules
    assert len({rule.code for rule in rules}) == len(rules)
    assert len({rule.name for rule in rules}) == len(rules)
    assert [rule.code for rule in rules] == sorted(rule.code for rule in rules)


@every_rule
def test_code_belongs_to_the_folder(rule: Rule) -> None:
    assert re.fullmatch(r"ML[1-9]\d\d", rule.code)
    assert rule.module.split(".")[2:3] == [topic_of(rule.code).folder]


@every_rule
def test_name_says_what_is_wrong(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert not rule.name.startswith(("no-", "avoid-", "use-"))


@every_rule
def test_messages_keep_the_style(rule: Rule) -> None:
    assert_style(rule.message, 88)
    assert_style(rule.help, 160)


@every_rule
def test_since_is_a_version_that_exists(rule: Rule) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    assert _numbers(rule.since) <= _numbers(version("flake8-mllint"))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


@every_rule
def test_frameworks_are_known(rule: Rule) -> None:
    assert rule.frameworks
    assert rule.frameworks <= FRAMEWORKS


@every_rule
def test_handlers_are_documented_generators_of_the_rules_own_module(rule: Rule) -> None:
    assert rule.subscriptions
    for subscription in rule.subscriptions:
        assert inspect.isgeneratorfunction(subscription.handler)
        assert subscription.handler.__module__ == rule.module
        kinds = (subscription.node_types, subscription.methods, subscription.callees)
        assert sum(bool(kind) for kind in kinds) == 1


@every_rule
def test_page_has_its_sections(rule: Rule) -> None:
    page = RulePage.of(rule)
    bad, good = page.code("Example"), page.code("Use instead")
    assert bad, "no Python block under *Example*"
    assert len(bad) == len(good), "every example needs its counterpart under *Use instead*"
    assert re.search(r"https://\S+", page.sections["References"]), "no reference"


@every_rule
def test_claims_are_shown_in_the_real_frameworks(rule: Rule) -> None:
    with_reason = tomllib.loads((TESTS / "evidence" / "without.toml").read_text("utf-8"))
    evidence = TESTS / "evidence" / f"test_{rule.name.replace('-', '_')}.py"
    if rule.name in with_reason:
        assert with_reason[rule.name].strip(), "say why there is nothing to show"
        assert not evidence.exists(), f"tests/evidence/without.toml still lists {rule.name}"
    else:
        assert evidence.exists(), f"{evidence} is missing (or a reason in without.toml)"


def test_reasons_for_no_evidence_name_rules() -> None:
    with_reason = tomllib.loads((TESTS / "evidence" / "without.toml").read_text("utf-8"))
    assert set(with_reason) <= {rule.name for rule in all_rules()}


def test_topics_have_a_block_each() -> None:
    assert [topic.digit for topic in TOPICS] == list("123456789")
    assert len({topic.folder for topic in TOPICS}) == len(TOPICS)
    with pytest.raises(ValueError, match="ML001"):
        topic_of("ML001")


# -- selection ------------------------------------------------------------------------------------


def test_bare_prefix_leaves_off_what_is_off_by_default() -> None:
    on = [rule.code for rule in all_rules() if rule.is_default]
    assert list(select(["ML"], []).codes) == on
    assert len(on) < len(all_rules())


def test_all_is_every_rule() -> None:
    assert select(["ALL"], []).codes == tuple(rule.code for rule in all_rules())
    assert select(["ML", "ALL"], []).codes == select(["ALL"], []).codes
    assert select(["ALL"], ["ML"]).codes == select(["ML"], ["ALL"]).codes == (), "a tie is ignored"


@every_rule
def test_rule_can_be_named_in_every_way(rule: Rule) -> None:
    for selector in (rule.code, rule.code.lower(), rule.name):
        assert select([selector], []).codes == (rule.code,)
    block = rule.code[:3]
    assert rule.code in select([block], []).codes
    assert rule.code not in select(["ML", block], [rule.code]).codes
    assert rule.code in select([rule.code], [block]).codes, "the more specific selector wins"
    assert rule.code not in select([rule.code], [rule.code]).codes, "a tie is ignored"


@pytest.mark.parametrize("selector", ["ML1234", "E501", "", "tensor", "ML199x", "M"])
def test_unknown_selector_is_an_error(selector: str) -> None:
    with pytest.raises(UnknownSelectorError) as caught:
        select([selector], [])
    assert caught.value.selector == selector


def test_rules_are_dispatched_in_a_fixed_order() -> None:
    rules = all_rules()
    forwards, backwards = RuleSet(rules), RuleSet(reversed(rules))
    assert forwards.codes == backwards.codes == tuple(sorted(forwards.codes))
    assert forwards.dispatch == backwards.dispatch


# -- the gate -------------------------------------------------------------------------------------


@every_rule
def test_gate_opens_for_the_rules_own_example(rule: Rule) -> None:
    for example in RulePage.of(rule).code("Example"):
        assert RuleSet([rule]).may_fire(example.encode())


def test_gate_stays_shut_for_other_code() -> None:
    assert not RuleSet(all_rules()).may_fire(b"import os\n\nprint(os.getcwd())\n")
    assert not RuleSet([]).may_fire(b"import torch\nx = torch.zeros(1)\nx.cuda()\n")


def test_rules_are_listed_without_importing_them() -> None:
    assert listed_rules() == tuple((rule.code, rule.name) for rule in all_rules())
