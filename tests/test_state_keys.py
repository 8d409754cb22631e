"""Sets of keys, the keys of modules found by carrying out their constructors, and the paths of files."""

from pathlib import Path as FilePath

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.constructors import CLOSED, HEAD, net
from mllint.semantic.checkpoints.paths import Path, joined
from mllint.semantic.construction.state_keys import KeySet, Rename, compare
from mllint.semantic.model import Model
from mllint.semantic.modules.module_keys import module_keys
from mllint.semantic.project import Project
from mllint.semantic.values import Module
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

# -- sets of keys ---------------------------------------------------------------------------------


def open_at(*prefixes: str) -> KeySet:
    return KeySet(open=frozenset(prefixes))


def test_the_batch_counter_may_be_absent() -> None:
    keys = KeySet.of(["bn.weight", "bn.num_batches_tracked"])
    assert keys.certain == {"bn.weight"}
    assert keys.optional == {"bn.num_batches_tracked"}
    assert not compare(KeySet.of(["bn.weight"]), keys)


def test_what_is_open_is_never_a_mismatch() -> None:
    wanted = KeySet.of(["fc.weight"]) | open_at("body.")
    assert not compare(KeySet.of(["fc.weight", "body.0.weight"]), wanted)
    assert compare(KeySet.of(["fc.weight", "head.0.weight"]), wanted).unexpected == ("head.0.weight",)
    assert not compare(open_at(""), wanted)
    assert compare(open_at("body."), wanted).missing == ("fc.weight",)


def test_nothing_can_match() -> None:
    assert compare(open_at("module."), KeySet.of(["fc.weight"])).is_total
    assert not compare(KeySet.of(["fc.weight", "a"]), KeySet.of(["fc.weight", "b"])).is_total
    excluding = KeySet(open=frozenset({""}), never=frozenset({"module."}))
    assert compare(open_at("module."), excluding).is_total
    assert not compare(KeySet.of([]), KeySet.of([]))


def test_union_keeps_only_exclusions_of_both() -> None:
    excluding = KeySet(open=frozenset({""}), never=frozenset({"module."}))
    assert (excluding | KeySet.of(["fc.weight"])).never == {"module."}
    assert (excluding | KeySet.of(["module.weight"])).never == frozenset()


def test_renaming_follows_what_is_open() -> None:
    stripped = open_at("module.").renamed(Rename(lambda key: (key.removeprefix("module."),)))
    assert stripped.open == {""}
    assert open_at("").renamed(Rename(lambda key: ("net." + key,))).open == {"net."}
    without = open_at("").renamed(Rename(lambda key: (key.replace("module.", ""),)))
    assert without.never == {"module."}
    assert open_at("").renamed(Rename(lambda key: None)) == open_at("")
    asks = Rename(lambda key: (key,) if "head" in key else ("net." + key,), frozenset({"head"}))
    assert open_at("").renamed(asks).open == {""}


def test_unknown_names_make_the_rest_uncertain() -> None:
    keys = KeySet.of(["a", "b"]).renamed(Rename(lambda key: (key,) if key == "a" else None))
    assert keys.certain == {"a"}
    assert keys.may_hold("anything")


key = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join)
key_sets = st.builds(
    lambda certain, opened: KeySet.of(certain) | open_at(*(f"{name}." for name in opened)),
    st.sets(key),
    st.sets(key, max_size=2),
)


@given(key_sets)
def test_a_set_fits_itself(keys: KeySet) -> None:
    assert not compare(keys, keys)


@given(key_sets, st.sampled_from(["module.", "net.", ""]))
def test_a_prefix_put_on_and_taken_off_changes_nothing(keys: KeySet, prefix: str) -> None:
    back = keys.prefixed(prefix).renamed(Rename(lambda name: (name.removeprefix(prefix),)))
    assert back.certain == keys.certain
    assert back.open == keys.open


@given(key_sets, key_sets, key)
def test_a_union_may_hold_what_a_part_may_hold(one: KeySet, other: KeySet, name: str) -> None:
    assert (one | other).may_hold(name) == (one.may_hold(name) or other.may_hold(name))


# -- modules --------------------------------------------------------------------------------------

PADDLE = "import paddle\nfrom paddle import nn\n"


def keys_of(body: str, built: str = "Net()", head: str = HEAD) -> KeySet:
    """The keys of what the expression builds, in a file with the body."""
    source = Source(f"{head}{body}\nbuilt = {built}\nbuilt.state_dict()\n", "net.py")
    model = Model(Tree(parse(source)), source)
    node = next(name for name in model.names_by_word["built"] if isinstance(model.tree.parent(name), cst.Attribute))
    value = model.value(node)
    assert isinstance(value, Module)
    return module_keys(model, node, value)


@pytest.mark.parametrize(("lines", "keys"), CLOSED.values(), ids=CLOSED)
def test_keys_are_known(lines: list[str], keys: set[str]) -> None:
    found = keys_of(net(*lines))
    assert found.is_closed
    assert found.certain == keys


OPEN = {
    "condition": (["if deep:", "    self.m = nn.PReLU()"], "m.weight"),
    "both-branches": (["if deep:", "    self.m = nn.PReLU()", "else:", "    self.m = None"], "m.weight"),
    "unknown-length": (["self.l = nn.ModuleList([nn.PReLU() for _ in range(deep)])"], "l.0.weight"),
    "unknown-loop": (["parts = []", "for _ in deep:", "    parts.append(nn.PReLU())", "self.s = nn.Sequential(*parts)"],
                     "s.3.weight"),
    "unknown-module": (["self.m = deep"], "m.weight"),
    "unknown-name": (["self.add_module(deep, nn.PReLU())"], "x.weight"),
    "left-early": (["if deep:", "    return", "self.m = nn.PReLU()"], "m.weight"),
    "try": (["try:", "    self.m = nn.PReLU()", "except ImportError:", "    pass"], "m.weight"),
    "reparametrized": (["self.m = nn.utils.weight_norm(nn.Linear(1, 1))"], "m.weight_g"),
    "given-away": (["self.m = nn.Linear(1, 1)", "deep(self.m)"], "m.weight_orig"),
    "tables": (["self.m = nn.Linear(1, 1)", "self.m._parameters.clear()"], "m.other"),
    "switch": (["self.m = nn.Linear(1, 1, bias=deep)"], "m.bias"),
    "buffer": (["self.register_buffer('b', deep)"], "b"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "key"), OPEN.values(), ids=OPEN)
def test_what_cannot_be_told_is_open(lines: list[str], key: str) -> None:
    body = net("self.sure = nn.PReLU()", *lines, parameters="self, deep")
    found = keys_of(body, "Net(input())")
    assert found.may_hold(key)
    assert key not in found.certain


def test_the_rest_stays_known() -> None:
    body = net("self.sure = nn.PReLU()", "if deep:", "    self.m = nn.PReLU()", parameters="self, deep")
    found = keys_of(body, "Net(input())")
    assert found.certain == {"sure.weight"}
    assert not found.may_hold("other.weight")


def test_arguments_and_defaults_decide() -> None:
    body = net(
        "self.l = nn.ModuleList([nn.Linear(1, 1, bias=bias) for _ in range(depth)])",
        parameters="self, depth, bias=True",
    )
    assert keys_of(body, "Net(1)").certain == {"l.0.weight", "l.0.bias"}
    assert keys_of(body, "Net(2, bias=False)").certain == {"l.0.weight", "l.1.weight"}
    assert keys_of(body, "Net(**{'depth': 1, 'bias': False})").certain == {"l.0.weight"}


def test_bases_helpers_and_functions() -> None:
    body = """
def pair(width):
    return [nn.Linear(width, width), nn.ReLU()]

class Base(nn.Module):
    kind = nn.PReLU
    def __init__(self, depth):
        super(Base, self).__init__()
        self.body = self._build(depth)
    def _build(self, depth):
        parts = []
        for _ in range(depth):
            parts.extend(pair(4))
        return nn.Sequential(*parts)

class Net(Base):
    def __init__(self):
        super().__init__(2)
        def block(name):
            self.add_module(name, self.kind())
        block("first")
"""
    assert keys_of(body).certain == {"body.0.weight", "body.0.bias", "body.2.weight", "body.2.bias", "first.weight"}


def test_a_class_derived_from_a_layer() -> None:
    body = """
class Conv(nn.Conv2d):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, bias=False, **kwargs)
        self.norm = nn.BatchNorm2d(1)

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(Conv(1, 1, 1), nn.ReLU())
"""
    names = ("weight", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var")
    found = keys_of(body)
    assert found.certain == {f"0.{name}" for name in names}
    assert found.optional == {"0.norm.num_batches_tracked"}


def test_what_other_methods_assign_is_open() -> None:
    body = net("self.head = nn.PReLU()", "self.body = nn.PReLU()")
    body += "    def reset(self, n):\n        self.head = nn.Linear(n, n)\n"
    found = keys_of(body)
    assert found.certain == {"body.weight"}
    assert found.may_hold("head.bias")


@pytest.mark.parametrize(
    "method",
    [
        "def state_dict(self): return {}",
        "def _load_from_state_dict(self, *a): pass",
        "def __setattr__(self, k, v): pass",
    ],
)
def test_a_class_with_hooks_is_open(method: str) -> None:
    assert keys_of(net("self.a = nn.PReLU()") + f"    {method}\n").may_hold("anything")


def test_an_unknown_base_is_open() -> None:
    body = (
        "from elsewhere import Base\nclass Net(Base, nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    )
    assert keys_of(body).may_hold("anything")


def test_changes_after_building_are_open() -> None:
    found = keys_of(net("self.a = nn.PReLU()", "self.b = nn.PReLU()") + "\n", "Net()\nbuilt.a = nn.Linear(1, 1)")
    assert found.certain == {"b.weight"}
    assert keys_of(net(), "Net()\nbuilt.add_module('x', nn.PReLU())").may_hold("anything")


def test_wrappers_put_their_prefix_in_front() -> None:
    body = net("self.a = nn.PReLU()")
    assert keys_of(body, "nn.DataParallel(Net())").certain == {"module.a.weight"}
    assert keys_of(body, "torch.compile(nn.DataParallel(Net()))").certain == {"_orig_mod.module.a.weight"}
    assert keys_of(body, "torch.jit.script(Net())").certain == {"a.weight"}


def test_constructions_end() -> None:
    assert not keys_of("class Net(nn.Module):\n    def __init__(self):\n        self.a = Net()\n").is_closed
    endless = net("self.l = nn.ModuleList([nn.ModuleList([nn.PReLU() for _ in range(999)]) for _ in range(999)])")
    assert keys_of(endless).may_hold("l.0.0.weight")
    assert keys_of(net("x = '0' * 10 ** 9", "self.a = nn.PReLU()")).certain == {"a.weight"}
    assert keys_of(net("raise NotImplementedError")).may_hold("anything")


def test_paddle_layers() -> None:
    body = """
class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(3, 8, 3, weight_attr=paddle.ParamAttr(name="w"), bias_attr=False)
        self.bn = nn.BatchNorm2D(8)
        self.s = nn.Sequential(("a", nn.Linear(1, 1)), ("b", nn.ReLU()))
        self.w = self.create_parameter([1])
        self.add_sublayer("extra", nn.PReLU())
        self.register_buffer("kept", paddle.zeros([1]))
        self.register_buffer("lost", paddle.zeros([1]), persistable=False)
"""
    assert keys_of(body, head=PADDLE).certain == {
        "conv.weight", "bn.weight", "bn.bias", "bn._mean", "bn._variance", "s.a.weight", "s.a.bias", "w",
        "extra._weight", "kept",
    }  # fmt: skip
    assert keys_of(body, "paddle.DataParallel(Net())", PADDLE).certain >= {"conv.weight"}


@pytest.mark.parametrize(
    ("head", "base", "made", "expected"),
    [
        (HEAD, "nn.Module", "nn.ModuleList(modules=[nn.PReLU()])", {"l.0.weight"}),
        (HEAD, "nn.Module", "nn.ModuleDict(modules={'a': nn.PReLU()})", {"l.a.weight"}),
        (HEAD, "nn.Module", "nn.ParameterList(values=[nn.Parameter(w)])", {"l.0"}),
        (PADDLE, "nn.Layer", "nn.LayerList(sublayers=[nn.PReLU()])", {"l.0._weight"}),
        (PADDLE, "nn.Layer", "nn.LayerDict(sublayers={'a': nn.PReLU()})", {"l.a._weight"}),
    ],
)
def test_lists_and_dicts_that_are_given_by_keyword(head: str, base: str, made: str, expected: set[str]) -> None:
    body = f"class Net({base}):\n    def __init__(self, w):\n        super().__init__()\n        self.l = {made}\n"
    assert keys_of(body, "Net(w)", head).certain == expected
    assert keys_of(body.replace("=[nn.PReLU()]", "=w"), "Net(w)", head).is_closed is ("[nn.PReLU()]" not in body)


def test_sibling_files(tmp_path: FilePath) -> None:
    (tmp_path / "config.py").write_text("WIDTHS = [1, 2]\nSIZES = {'small': 1}\n")
    (tmp_path / "blocks.py").write_text(
        "from torch import nn\nfrom config import WIDTHS\n"
        "class Net(nn.Module):\n    def __init__(self, widths=WIDTHS):\n        super().__init__()\n"
        "        self.l = nn.ModuleList([nn.PReLU(w) for w in widths])\n"
        "def build(n):\n    return Net(range(n))\n"
    )
    source = Source("from blocks import Net, build\na = Net()\nb = build(1)\na.x\nb.x\n", str(tmp_path / "use.py"))
    model = Model(Tree(parse(source)), source, Project(tmp_path))
    found = []
    for word in ("a", "b"):
        node = next(name for name in model.names_by_word[word] if isinstance(model.tree.parent(name), cst.Attribute))
        value = model.value(node)
        assert isinstance(value, Module)
        found.append(module_keys(model, node, value).certain)
    assert found == [{"l.0.weight", "l.1.weight"}, {"l.0.weight"}]


def test_a_ring_of_imports_ends(tmp_path: FilePath) -> None:
    (tmp_path / "one.py").write_text("from two import LENGTH\n")
    (tmp_path / "two.py").write_text("from one import LENGTH\n")
    text = f"{HEAD}from one import LENGTH\n" + net("self.l = nn.ModuleList([nn.PReLU()] * LENGTH)")
    source = Source(f"{text}\nbuilt = Net()\nbuilt.x\n", str(tmp_path / "use.py"))
    model = Model(Tree(parse(source)), source, Project(tmp_path))
    node = model.names_by_word["built"][-1]
    value = model.value(node)
    assert isinstance(value, Module)
    assert module_keys(model, node, value).may_hold("l.0.weight")


# -- paths ----------------------------------------------------------------------------------------

FOLDER = Path.unknown("folder@1")
OTHER = Path.unknown("other@2")


def test_paths_that_are_one() -> None:
    assert Path("./a/net.pt").is_same_as(Path("a/net.pt"))
    best, same = joined(FOLDER, Path("best.pt")), joined(OTHER, Path("best.pt"))
    assert best is not None
    assert same is not None
    assert best.is_same_as(same)
    assert best.is_same_as(Path("runs/best.pt"))
    assert FOLDER.is_same_as(Path.unknown("folder@1"))
    numbered = Path("runs/epoch_" + Path.unknown("n@3").text + ".pt")
    assert numbered.is_same_as(Path("runs/epoch_12.pt"))
    assert numbered.is_same_as(Path("runs/epoch_" + OTHER.text + ".pt"))


def test_paths_that_may_differ() -> None:
    assert not Path("a/net.pt").is_same_as(Path("b/net.pt"))
    assert not FOLDER.is_same_as(OTHER)
    assert not FOLDER.is_same_as(Path("net.pt"))
    short = Path(FOLDER.text + ".pt")
    assert not short.is_same_as(Path("net.pt"))
    assert not Path("runs/epoch_" + FOLDER.text + ".pt").is_same_as(Path("other/epoch_1.pt"))


@given(st.text("ab/.", max_size=6), st.text("ab/.", max_size=6))
def test_sameness_is_mutual(one: str, other: str) -> None:
    first, second = Path(one + FOLDER.text), Path(other)
    assert first.is_same_as(second) == second.is_same_as(first)
