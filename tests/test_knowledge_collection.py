"""Collecting facts from an installed framework, tried on a framework of a few lines."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mllint._dev import knowledge
from mllint._dev.knowledge.layers import called, layer_state
from mllint._dev.knowledge.probe import Maker, guarded, isolated, observe
from mllint._dev.knowledge.signatures import Parameter, Signature, longest, returns_of, signatures_of
from mllint._dev.knowledge.tables import state_row
from mllint.knowledge.rows import read_layer_state
from mllint.knowledge.schema import LayerState, Returns


def _documented(text: str) -> Callable[..., Any]:
    def function(*args: object, **kwargs: object) -> None: ...

    function.__doc__ = text
    return function


@pytest.mark.parametrize(
    ("docstring", "parameters", "returns"),
    [
        ("f(input, *, out=None) -> Tensor\n\nText.", "input * out", "tensor"),
        ("f(input: Tensor, dim: int = 0) -> Tuple[Tensor, ...]", "input dim", "tensors"),
        ("f(*size, out=None, dtype=None) -> Tensor", "*size out dtype", "tensor"),
        ("Text.\n\n.. function:: f(a, b=(1, 2), **kwargs)", "a b **kwargs", None),
        ("torch.f(x, /) -> bool", "x", "number"),
        ("f(x) -> Tensor\n\nf(x, dim, keepdim=False) -> (Tensor, LongTensor)", "x dim keepdim", "tensors"),
        ("Example: f(x + 1)\n\nf(x)", "x", None),
    ],
)
def test_signature_from_documentation(docstring: str, parameters: str, returns: Returns | None) -> None:
    signature = longest(signatures_of(_documented(docstring), "f"))
    assert signature.text() == parameters
    assert signature.returns == returns


def test_first_documented_signature_comes_first() -> None:
    first, second = signatures_of(_documented("f(input) -> Tensor\nf(input, dim) -> (Tensor, Tensor)"), "f")
    assert (first.text(), first.returns) == ("input", "tensor")
    assert (second.text(), second.returns) == ("input dim", "tensors")


def test_keyword_only_parameters_of_a_page_are_optional() -> None:
    (signature,) = signatures_of(_documented("f(input, *, out)"), "f")
    assert [it.required for it in signature.parameters] == [True, False]


def test_signature_from_python() -> None:
    def f(x: int, y: int = 1, *rest: int, z: int = 2, **others: int) -> "list[Tensor]": ...  # noqa: F821

    signature = longest(signatures_of(f, "f"))
    assert signature.text() == "x y *rest z **others"
    assert signature.returns == "tensors"
    assert signature.without_first().text() == "y *rest z **others"


@pytest.mark.parametrize(
    ("annotation", "returns"),
    [
        ("Tensor", "tensor"),
        ("torch.Tensor", "tensor"),
        ("LongTensor", "tensor"),
        ("tuple[torch.Tensor, ...]", "tensors"),
        ("(Tensor min, Tensor max)", "tensors"),
        ("List[Tensor]", "tensors"),
        ("None", "none"),
        ("bool", "number"),
        ("Self", "self"),
        ("Iterator[Parameter]", "generator"),
        ("torch.nn.modules.module.Module", "module"),
        ("Tensor | None", None),
        ("Union[Tensor, float]", None),
        ("dict[str, Tensor]", None),
        ("", None),
    ],
)
def test_returns_of(annotation: str, returns: Returns | None) -> None:
    assert returns_of(annotation) == returns


class Box:
    """Stands for a tensor."""

    def __init__(self, rank: int = 2) -> None:
        self.rank = rank
        self.version = 0

    def fill_(self) -> "Box":
        self.version += 1
        return self

    def numbers(self) -> list[float]:
        return [1.0]


class BoxSamples:
    """The smallest framework there is."""

    def firsts(self, name: str) -> tuple[Maker, ...]:
        return (lambda: Box(2), lambda: Box(3), lambda: Box(0))

    def arguments(self, name: str, receiver: Any) -> tuple[Any, ...]:
        return (Box(), 1) if name == "other" else (0,)

    def fingerprint(self, value: Any) -> Any:
        return value.version if isinstance(value, Box) else None

    def returns(self, value: Any) -> Returns:
        return "tensor" if isinstance(value, Box) else "none" if value is None else "number"

    def rank(self, value: Any) -> int:
        return value.rank if isinstance(value, Box) else -1


def _raises(box: Box) -> Box:
    raise ValueError(box)


@pytest.mark.parametrize(
    ("function", "returns"),
    [
        (lambda box: Box(box.rank), "tensor"),
        (lambda box: Box(0), "scalar"),
        (lambda box: Box(box.rank and box.rank - 2), "tensor"),  # 0-d for a matrix, not for a batch of matrices
        (lambda box: box, "tensor"),  # unchanged: `x.contiguous()`
        (lambda box: box.fill_(), "self"),
        (lambda box: box.fill_() if box.rank else box, "self"),  # nothing to change this time
        (lambda box: box.fill_() and None, "none"),
        (lambda box: box.fill_() and Box(box.rank), "tensor"),
        (lambda box: box.fill_() if box.rank else Box(), None),
        (lambda box: 1 if box.rank else Box(), None),
        (lambda box: [], None),
        (lambda box: box.numbers(), "number"),
        (_raises, None),
    ],
)
def test_observe(function: Callable[[Box], object], returns: Returns | None) -> None:
    assert observe(function, Signature((Parameter("input", required=True),), None), BoxSamples()) == returns


def test_observe_fills_required_parameters_until_a_call_succeeds() -> None:
    def function(box: Box, other: object, *, value: int) -> Box:
        if isinstance(other, Box) or value != 0:
            raise TypeError
        return Box(box.rank)

    parameters = (
        Parameter("input", required=True),
        Parameter("other", required=True),
        Parameter("value", required=True, keyword_only=True),
        Parameter("name", required=False),
    )
    assert observe(function, Signature(parameters, None), BoxSamples()) == "tensor"


def test_what_takes_too_long_is_no_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mllint._dev.knowledge.probe._SECONDS_EACH", 1)

    def function(box: Box) -> Box:
        if box.rank == 3:
            time.sleep(30)
        return box

    started = time.monotonic()
    assert observe(function, Signature((Parameter("input", required=True),), None), BoxSamples()) is None
    assert time.monotonic() - started < 20
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_guarded_silences_and_notes_failures(capfd: pytest.CaptureFixture[str]) -> None:
    with guarded() as attempt:
        print("noise")
        raise RuntimeError
    assert attempt.failed
    assert not attempt.timed_out
    assert capfd.readouterr() == ("", "")


def test_isolated_goes_on_after_a_crash() -> None:
    here: list[int] = []

    def crash() -> Returns:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def tensor() -> Returns:
        here.append(1)
        return "tensor"

    works: dict[str, Callable[[], Returns | None]] = {
        "a": tensor,
        "b": crash,
        "c": lambda: None,
        "d": crash,
        "e": tensor,
        "f": crash,
    }
    assert isolated(works) == {"a": "tensor", "b": None, "c": None, "d": None, "e": "tensor", "f": None}
    assert not here, "the works must not run in this process"
    assert isolated({}) == {}


class Gate:
    """Stands for a layer with parameters that its arguments switch."""

    def __init__(
        self, size: int, *, bias: bool = True, extra: bool = False, both: bool = False, depth: int = 1
    ) -> None:
        self.keys = [f"weight{layer}" for layer in range(depth)]
        self.keys += [f"bias{layer}" for layer in range(depth) if bias]
        self.keys += ["extra"] if extra else []
        self.keys += ["weight_both", *(["bias_both"] if bias else [])] if both else []

    def forward(self, box: Box) -> Box:
        return box

    def __call__(self, box: Box) -> Box:
        return self.forward(box)


class GateFramework:
    """What the functions about layers ask of a framework."""

    samples = BoxSamples()

    def make_layer(self, name: str) -> Any:
        return Gate(1)

    def other_values(self, parameter: Parameter) -> tuple[Any, ...]:
        if isinstance(parameter.default, bool):
            return (not parameter.default,)
        return (parameter.default + 1,)

    def state_keys(self, layer: Gate) -> list[str]:
        return layer.keys


GATE = longest([it.without_first() for it in signatures_of(Gate.__init__, "__init__")])


def test_layer_state_finds_switches() -> None:
    framework: Any = GateFramework()
    state = layer_state(framework, Gate, GATE)
    assert state is not None
    assert state.keys == ("weight0", "bias0")
    # `both` adds a bias only where there are biases: it does not act independently of `bias`.
    assert state.switches == (("bias", False, ("weight0",)), ("extra", True, ("weight0", "bias0", "extra")))
    assert state.depends == ("both", "depth")


def test_layer_around_a_layer_is_sized() -> None:
    framework: Any = GateFramework()
    around = Signature((Parameter("encoder_layer", required=True),), None)
    assert layer_state(framework, Gate, around) == LayerState((), sized=True)


def test_layer_that_cannot_be_built_has_no_state() -> None:
    framework: Any = GateFramework()
    assert layer_state(framework, Gate, Signature((Parameter("nosuch", required=True),), None)) is None


def test_called_of_a_class_without_forward() -> None:
    framework: Any = GateFramework()
    assert called(framework, Box, Signature((), None)) is None


@pytest.mark.parametrize(
    "state",
    [
        LayerState(()),
        LayerState(("weight",)),
        LayerState((), sized=True),
        LayerState(("a.b", "c"), (("bias", False, ("c",)), ("affine", True, ())), ("depth", "width")),
    ],
)
def test_layer_state_survives_the_table(state: LayerState) -> None:
    name, _, rest = state_row("torch.nn.Thing", state).partition(" ")
    assert name == "torch.nn.Thing"
    assert read_layer_state(rest) == state


def test_command_writes_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(knowledge, "_KNOWLEDGE", tmp_path)
    monkeypatch.setattr(knowledge, "_render", lambda what: f"{what} 1\n")
    assert knowledge.main(["torch"]) == 0
    assert (tmp_path / "torch.txt").read_text("utf-8") == "torch 1\n"
    assert knowledge.main(["torch", "--check"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(knowledge, "_render", lambda what: f"{what} 2\n")
    assert knowledge.main(["torch", "--check"]) == 1
    assert "-torch 1\n+torch 2\n" in capsys.readouterr().out
    assert (tmp_path / "torch.txt").read_text("utf-8") == "torch 1\n"
    assert knowledge.main(["neighbours"]) == 0
    assert (tmp_path / "neighbour_tables.py").exists()


def test_command_refuses_other_frameworks() -> None:
    with pytest.raises(SystemExit):
        knowledge.main(["jax"])
