"""What a call writes to a file, and what that consists of."""

import libcst as cst
import pytest

from mllint.semantic.checkpoints.saving import parts, saved
from mllint.semantic.model import Model
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

HEAD = "import torch, pickle\nfrom torch import save as torch_save\n"


def _model(text: str) -> Model:
    source = Source.from_bytes((HEAD + text).encode(), "file.py")
    return Model(Tree(parse(source)), source)


def _saved(text: str) -> list[str]:
    """The texts of what the calls in a piece of code save, each with its keys, sorted."""
    model = _model(text)
    found = []
    for call in model.tree.by_type[cst.Call]:
        what = saved(model, call)
        for part in parts(model, what.node) if what else ():
            keys = ".".join(key or "?" for key in part.keys)
            found.append(f"{keys}={model.tree.module.code_for_node(part.node)}" if keys else _text(model, part.node))
    return sorted(found)


def _text(model: Model, node: cst.CSTNode) -> str:
    return model.tree.module.code_for_node(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("torch.save(x, 'f')", ["x"]), ("torch.save(obj=x, f='f')", ["x"]), ("torch_save(x, 'f')", ["x"])],
        *[("pickle.dump(x.y, file)", ["x.y"]), ("other.save(x, 'f')", []), ("torch.load(x)", [])],
        ("torch.save({'a': x, 'b': [y, {'c': z}], k: w}, 'f')", ["?=w", "a=x", "b.?.c=z", "b.?=y"]),
        ("torch.save(dict(a=x, **rest), 'f')", ["a=x", "rest"]),
        ("torch.save({**rest, 'a': x}, 'f')", ["a=x", "rest"]),
        ("state = {'a': x}\nstate['b'] = y\ntorch.save(state, 'f')", ["a=x", "b=y"]),
        ("state = make()\nstate['b'] = y\ntorch.save(state, 'f')", ["b=y", "make()"]),
        ("if c:\n    state = x\nelse:\n    state = {'a': y}\ntorch.save(state, 'f')", ["a=y", "x"]),
        ("a, b = pair\ntorch.save(a, 'f')", ["a"]),
        ("for a in several:\n    torch.save(a, 'f')", ["a"]),
        ("x = {'a': y}\nx = {'again': x}\ntorch.save(x, 'f')", ["again.a=y"]),
        ("def save_it(path, state):\n    torch.save(state, path)\nsave_it('f', {'a': x})", ["a=x", "state"]),
        ("def save_it(path, state):\n    torch.save(state, path)\nsave_it(state=x, path='f')", ["state", "x"]),
        ("def save_it(path, state):\n    torch.save(state.y, path)\nsave_it('f', {'a': x})", ["state.y"]),
        ("def save_it(s):\n    torch.save(s, 'f')\ndef save_all(s):\n    save_it(s)\nsave_all(x)", ["s", "s", "x"]),
        ("def save_it(s):\n    s = clean(s)\n    torch.save(s, 'f')\nsave_it(x)", ["clean(s)"]),
        ("def save_it(*s):\n    torch.save(s, 'f')\nsave_it(x)", ["s"]),
        ("class A:\n    def save(self, s):\n        torch.save(s, 'f')\nA().save(x)", ["s", "x"]),
        ("def save(s):\n    save(s)\nsave(x)", []),
    ],
)
def test_what_is_saved(text: str, expected: list[str]) -> None:
    assert _saved(text) == sorted(expected)


def test_thing_that_is_put_into_itself_comes_to_an_end() -> None:
    found = _saved("x = {}\nfor i in y:\n    x = {'a': x, 'b': x}\ntorch.save(x, 'f')")
    assert found
    assert len(found) < 200
