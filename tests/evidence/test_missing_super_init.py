"""ML401: a module whose ``__init__`` never reaches ``Module.__init__``, or reaches it too late."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def module_class(base: Any, initialize: Callable[[Any], Any]) -> Any:
    """A subclass of ``base`` with this ``__init__`` and a ``forward`` that gives its input back."""
    return type("Net", (base,), {"__init__": initialize, "forward": lambda self, x: x})


# ---- torch --------------------------------------------------------------------------------------


def test_torch_registering_before_init_raises(torch: Any) -> None:
    nn = torch.nn

    def layer(self: Any) -> None:
        self.fc = nn.Linear(2, 2)

    def container(self: Any) -> None:
        self.layers = nn.ModuleList([nn.Linear(2, 2)])

    def parameter(self: Any) -> None:
        self.w = nn.Parameter(torch.ones(2))

    def buffer(self: Any) -> None:
        self.register_buffer("b", torch.ones(2))

    def named(self: Any) -> None:
        self.add_module("fc", nn.Linear(2, 2))

    for register in (layer, container, parameter, buffer, named):

        def too_late(self: Any, register: Any = register) -> None:
            register(self)
            nn.Module.__init__(self)

        for initialize in (register, too_late):
            with pytest.raises(AttributeError):
                module_class(nn.Module, initialize)()


def test_torch_without_init_construction_may_pass_and_the_call_fails(torch: Any) -> None:
    def plain(self: Any) -> None:
        self.width = 3
        self.table = torch.ones(2)

    module = module_class(torch.nn.Module, plain)()
    for use in (lambda: module(1), module.train, module.state_dict, lambda: list(module.parameters())):
        with pytest.raises(AttributeError):
            use()


def test_torch_lists_and_plain_tensors_before_init_are_silent(torch: Any) -> None:
    """They survive, unregistered: what the other rules of this topic are about."""
    nn = torch.nn

    def late(self: Any) -> None:
        self.layers = [nn.Linear(2, 2)]
        self.table = torch.ones(2)
        self.width = 3
        nn.Module.__init__(self)

    module = module_class(nn.Module, late)()
    assert module(1) == 1
    assert not list(module.parameters())


def test_torch_calls_that_do_not_initialize(torch: Any) -> None:
    nn = torch.nn

    class Uncalled(nn.Module):
        def __init__(self) -> None:
            _ = super().__init__

    class OtherObject(nn.Module):
        def __init__(self) -> None:
            nn.Module().__init__()

    class Unbound(nn.Module):
        def __init__(self) -> None:
            super(Unbound).__init__()

    class Misspelled(nn.Module):
        def _init_(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.fc(x)

    for broken in (Uncalled(), OtherObject(), Unbound(), Misspelled()):
        with pytest.raises(AttributeError):
            broken(torch.ones(1, 2))

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__(self)

    with pytest.raises(TypeError):
        Twice()

    class OtherClass(nn.Module):
        def __init__(self) -> None:
            super(Twice, self).__init__()

    with pytest.raises(TypeError):
        OtherClass()


def test_torch_right_forms(torch: Any) -> None:
    nn = torch.nn

    class Old(nn.Module):
        def __init__(self) -> None:
            super(Old, self).__init__()  # noqa: UP008 - the form is the point
            self.fc = nn.Linear(2, 2)

    class Explicit(nn.Module):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.fc = nn.Linear(2, 2)

    class Inherited(Explicit):
        """No ``__init__`` of its own."""

    class Mixin:
        """No ``__init__`` either."""

    class Mixed(Mixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

    @dataclasses.dataclass(eq=False)
    class Data(nn.Module):
        width: int = 2

        def __post_init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(self.width, 2)

    for good in (Old, Explicit, Inherited, Mixed, Data):
        assert len(list(good().parameters())) == 2


def test_torch_mixin_that_stops_the_chain(torch: Any) -> None:
    """``super().__init__()`` is there and ends in the mixin."""

    class Mixin:
        def __init__(self) -> None:
            self.tag = 1

    class Mixed(Mixin, torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)

    with pytest.raises(AttributeError, match="cannot assign module"):
        Mixed()


# ---- paddle -------------------------------------------------------------------------------------


def test_paddle_registering_before_init_raises(paddle: Any) -> None:
    """Plain tensors too: a Layer takes them for buffers."""
    nn = paddle.nn

    def layer(self: Any) -> None:
        self.fc = nn.Linear(2, 2)

    def parameter(self: Any) -> None:
        self.w = paddle.create_parameter([2], "float32")

    def tensor(self: Any) -> None:
        self.table = paddle.ones([2])

    for register in (layer, parameter, tensor):

        def too_late(self: Any, register: Any = register) -> None:
            register(self)
            nn.Layer.__init__(self)

        for initialize in (register, too_late):
            with pytest.raises(ValueError, match=r"super\(\).__init__\(\) should be called first"):
                module_class(nn.Layer, initialize)()


def test_paddle_without_init_construction_may_pass_and_the_call_fails(paddle: Any) -> None:
    def plain(self: Any) -> None:
        self.width = 3

    layer = module_class(paddle.nn.Layer, plain)()
    for use in (lambda: layer(1), layer.train, layer.state_dict, layer.parameters):
        with pytest.raises(AttributeError):
            use()


def test_paddle_lists_and_numbers_before_init_are_silent(paddle: Any) -> None:
    nn = paddle.nn

    def late(self: Any) -> None:
        self.layers = [nn.Linear(2, 2)]
        self.width = 3
        nn.Layer.__init__(self)

    layer = module_class(nn.Layer, late)()
    assert layer(1) == 1
    assert not layer.parameters()


def test_super_of_the_root_class_passes_it_over(torch: Any, paddle: Any) -> None:
    for root, error in ((torch.nn.Module, AttributeError), (paddle.nn.Layer, ValueError)):

        def skip(self: Any, root: Any = root, framework: Any = torch if root is torch.nn.Module else paddle) -> None:
            super(root, self).__init__()
            self.fc = framework.nn.Linear(2, 2)

        with pytest.raises(error):
            module_class(root, skip)()


def test_init_of_a_class_without_self_raises(torch: Any, paddle: Any) -> None:
    for root in (torch.nn.Module, paddle.nn.Layer):

        def alone(self: Any, root: Any = root) -> None:
            root.__init__()

        with pytest.raises(TypeError, match="self"):
            module_class(root, alone)()


def test_call_of_the_class_takes_the_place_of_forward(torch: Any, paddle: Any) -> None:
    for root in (torch.nn.Module, paddle.nn.Layer):
        made = type("Made", (root,), {"forward": lambda _self, x: x, "__call__": lambda _self, x: -x})
        assert made()(1) == -1


def misspelled(base: Any, name: str) -> Any:
    def method(self: Any, size: int) -> None:
        self.size = size

    return type("Net", (base,), {name: method, "forward": lambda self, x: x * self.size})


MISSPELLED = ["_init_", "_init__", "__init_", "__int__", "__inti__", "__init___"]


@pytest.mark.parametrize("name", MISSPELLED)
def test_torch_misspelled_constructor_is_never_run(torch: Any, name: str) -> None:
    net = misspelled(torch.nn.Module, name)
    with pytest.raises(TypeError):
        net(3)
    with pytest.raises(AttributeError):
        net()(torch.ones(2))


@pytest.mark.parametrize("name", MISSPELLED)
def test_paddle_takes_the_argument_for_a_name(paddle: Any, name: str) -> None:
    net = misspelled(paddle.nn.Layer, name)
    layer = net("scope")  # no complaint
    with pytest.raises(AttributeError):
        layer(paddle.ones([2]))


def test_torch_layer_in_one_branch_before_init_raises(torch: Any) -> None:
    nn = torch.nn

    class Head(nn.Module):
        def __init__(self, kind: str) -> None:
            if kind == "gate":
                self.head = nn.Sigmoid()
            super().__init__()

    Head("none")
    with pytest.raises(AttributeError, match="before Module"):
        Head("gate")


def test_paddle_layer_in_one_branch_before_init_raises(paddle: Any) -> None:
    nn = paddle.nn

    class Head(nn.Layer):
        def __init__(self, kind: str) -> None:
            if kind == "gate":
                self.head = nn.Sigmoid()
            super().__init__()

    Head("none")
    with pytest.raises(ValueError, match="super"):
        Head("gate")


def layer_of(base: Any) -> Any:
    """A subclass of ``base`` that keeps a number only, and calls no other ``__init__``."""

    def initialize(self: Any) -> None:
        self.size = 3

    return type("Layer", (base,), {"__init__": initialize})


def test_torch_a_layer_without_init_fails_in_its_own_forward(torch: Any) -> None:
    nn = torch.nn
    for base in (nn.Conv1d, nn.Linear, nn.ReLU, nn.CrossEntropyLoss, nn.LSTM, nn.Sequential):
        module = layer_of(base)()
        for use in (lambda module=module: module(torch.ones(1, 1, 1)), module.train, module.state_dict):
            with pytest.raises(AttributeError):
                use()
    with pytest.raises(AttributeError):
        len(layer_of(nn.ModuleList)())


def test_paddle_a_layer_without_init_fails_in_its_own_forward(paddle: Any) -> None:
    nn = paddle.nn
    for base in (nn.Conv1D, nn.Linear, nn.ReLU, nn.CrossEntropyLoss, nn.Sequential):
        module = layer_of(base)()
        for use in (lambda module=module: module(paddle.ones([1, 1, 1])), module.state_dict):
            with pytest.raises(AttributeError):
                use()
    with pytest.raises(AttributeError):
        len(layer_of(nn.LayerList)())


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_a_misspelled_call_raises(framework: str, request: pytest.FixtureRequest) -> None:
    nn = request.getfixturevalue(framework).nn

    class Misspelled(nn.Linear):
        def __init__(self) -> None:
            super().__init(2, 2)

    with pytest.raises(AttributeError):
        Misspelled()


def answering_classes(nn: Any, base: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Modules whose own ``__getattr__`` asks a part of them, or what is no module."""

    class Part(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    class Settings(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self.settings = {"width": 3}

        def __getattr__(self, name: str) -> Any:
            if hasattr(self.settings, name):
                return getattr(self.settings, name)
            return super().__getattr__(name)

        def forward(self, x: Any) -> Any:
            return x

    return Part, Settings


def test_torch_own_getattr_does_not_make_up_for_it(torch: Any) -> None:
    part, settings = answering_classes(torch.nn, torch.nn.Module)
    with pytest.raises(AttributeError):
        part()
    with pytest.raises(AttributeError):
        settings()(torch.ones(2))


def test_paddle_own_getattr_does_not_make_up_for_it(paddle: Any) -> None:
    part, settings = answering_classes(paddle.nn, paddle.nn.Layer)
    with pytest.raises(ValueError, match="super"):
        part()
    with pytest.raises((AttributeError, ValueError)):
        settings()(paddle.ones([2]))


def holders(nn: Any, base: Any) -> type:
    """A class without a ``forward`` that only keeps `None`, and is given a layer later."""

    class Holder(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self.decoder = None

        def build(self) -> None:
            self.decoder = nn.Linear(2, 2)

        def is_in_training(self) -> bool:
            return bool(self.training)

    return Holder


@pytest.mark.parametrize("method", ["build", "parameters", "state_dict", "train", "children", "is_in_training"])
def test_torch_made_without_complaint_and_of_no_use(torch: Any, method: str) -> None:
    holder = holders(torch.nn, torch.nn.Module)()
    with pytest.raises(AttributeError):
        list(getattr(holder, method)())


@pytest.mark.parametrize("method", ["build", "parameters", "state_dict", "train", "children", "is_in_training"])
def test_paddle_made_without_complaint_and_of_no_use(paddle: Any, method: str) -> None:
    holder = holders(paddle.nn, paddle.nn.Layer)()
    with pytest.raises((AttributeError, ValueError)):
        list(getattr(holder, method)())
