"""Findings in code that nothing runs: there are none in a program of several files, and all in what stands alone."""

from pathlib import Path

import pytest

from mllint import Settings, lint_source

NET = """import torch
from torch import nn


def used(x):
    return x


def left(x):
    y = torch.zeros(3)
    y.clamp(0, 1)
    return y


class Used(nn.Module):
    def forward(self, x):
        y = torch.zeros(3)
        y.clamp(0, 1)
        return x + y


class Left(nn.Module):
    def forward(self, x):
        y = torch.zeros(3)
        y.clamp(0, 1)
        return x + y


def trained(x):
    y = torch.zeros(3)
    y.clamp(0, 1)

    def inner():
        y.sigmoid()

    return y


def caller(x):
    return called(x)


def called(x):
    y = torch.zeros(3)
    y.clamp(0, 1)
    return called(y) if x else y
"""
IN_LEFT, IN_USED_CLASS, IN_LEFT_CLASS, IN_USED, IN_CALLED = 11, 18, 25, 31, 45
REST = "from data import a\nfrom loss import b\nfrom tools import c\n"
FILES = {
    "net.py": NET,
    "train.py": f"from net import Used, trained, used\n{REST}",
    "data.py": "a = 1\n",
    "loss.py": "b = 1\n",
    "tools.py": "c = 1\n",
    "more.py": "from train import a\n",
    "requirements.txt": "torch\n",
}


def _found(folder: Path, files: dict[str, str]) -> list[int]:
    for name, text in files.items():
        (folder / name).write_text(text)
    settings = Settings(project_root=str(folder))
    result = lint_source(files["net.py"], str(folder / "net.py"), settings)
    return [item.location.row for item in result.diagnostics]


def test_what_nothing_names_is_left_out(tmp_path: Path) -> None:
    assert _found(tmp_path, FILES) == [IN_USED_CLASS, IN_USED]


def test_alone_everything_counts_but_a_function_inside_that_nothing_calls(tmp_path: Path) -> None:
    assert _found(tmp_path, {"net.py": NET}) == [IN_LEFT, IN_USED_CLASS, IN_LEFT_CLASS, IN_USED, IN_CALLED]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("settings.yaml", "model: Left\nstep: left\n"),
        ("README.md", "Call `left()` or `Left`.\n"),
        ("run.sh", "python train.py --net Left --with left\n"),
        ("other.py", "import net\n\nprint(net.left, net.Left)\n"),
        ("other.py", "print(getattr(net, 'left'), getattr(net, 'Left'))\n"),
    ],
)
def test_what_some_text_names_counts(tmp_path: Path, name: str, text: str) -> None:
    found = _found(tmp_path, FILES | {name: text})
    assert found == [IN_LEFT, IN_USED_CLASS, IN_LEFT_CLASS, IN_USED]


def test_classes_count_where_they_are_looked_for(tmp_path: Path) -> None:
    found = _found(tmp_path, FILES | {"other.py": "import net\n\nnets = net.Used.__subclasses__()\n"})
    assert found == [IN_USED_CLASS, IN_LEFT_CLASS, IN_USED]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.py", f"from net import Used, trained, used, caller\n{REST}"),
        ("train.py", f"from net import Used, trained, used, called\n{REST}"),
        ("README.md", "Begin with `caller`.\n"),
    ],
)
def test_what_a_function_in_use_calls_counts(tmp_path: Path, name: str, text: str) -> None:
    assert _found(tmp_path, FILES | {name: text}) == [IN_USED_CLASS, IN_USED, IN_CALLED]


@pytest.mark.parametrize("rest", ["", "    net.left(x)\n", "    return getattr(net, 'left')\n"])
def test_a_file_with_a_function_of_that_name_means_its_own(tmp_path: Path, rest: str) -> None:
    text = "import net\nfrom net import (\n    used,\n    trained,\n)\n\n\ndef left(x):\n    x\n" + rest
    found = _found(tmp_path, FILES | {"more.py": "from train import a\n" + text + "\n\nleft(used)\n"})
    assert (IN_LEFT in found) is bool(rest)


@pytest.mark.parametrize("rest", ["# left(1)\n", "    # print(left, Left)\n", "print(left_over, ALeft)\n"])
def test_a_comment_and_a_longer_word_name_nothing(tmp_path: Path, rest: str) -> None:
    text = "def f():\n    pass\n" + rest
    files = FILES | {"train.py": f"from net import *\nprint(Used, trained, used)\n{REST}{text}"}
    assert _found(tmp_path, files) == [IN_USED_CLASS, IN_USED]


UNREACHABLE = """import sys

import torch


def f(x):
    raise DeprecationWarning("use g")
    x.clamp(0, 1)
    return x


def g(x):
    x = torch.zeros(3)
    if False:
        x.clamp(0, 1)
    elif x.sum() > 0:
        x.clamp(0, 1)
    while 0:
        x.clamp(0, 1)
    for _ in range(3):
        if x.sum() > 1:
            continue
        x.clamp(0, 1)
        break
        x.clamp(0, 1)
    assert False, "not yet"
    x.clamp(0, 1)
    return x


y = g(torch.zeros(3))
y.clamp(0, 1)
print(y)
sys.exit()
y.clamp(0, 1)
print(y)
"""


def test_what_nothing_gets_to_is_left_out(tmp_path: Path) -> None:
    assert _found(tmp_path, {"net.py": UNREACHABLE}) == [17, 23, 32]


ALL = [IN_LEFT, IN_USED_CLASS, IN_LEFT_CLASS, IN_USED, IN_CALLED]


def test_what_a_package_has_that_is_installed_is_there_for_others(tmp_path: Path) -> None:
    package = tmp_path / "nets"
    package.mkdir()
    files = {name: text for name, text in FILES.items() if name.endswith(".py")}
    hidden = NET.replace("def left(", "def _left(")
    assert _found(package, {**files, "__init__.py": "", "net.py": hidden}) == [IN_USED_CLASS, IN_USED]
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(packages=['nets'])\n")
    settings = Settings(project_root=str(tmp_path))
    result = lint_source(hidden, str(package / "net.py"), settings)
    assert [item.location.row for item in result.diagnostics] == ALL[1:]


@pytest.mark.parametrize(
    "lookup", ["importlib.import_module(name)", "globals()[name]", "vars(net)[name]", "sys.modules[name]"]
)
def test_what_is_looked_up_by_a_name_may_be_any_class(tmp_path: Path, lookup: str) -> None:
    files = {**FILES, "more.py": f"{FILES['more.py']}found = {lookup}\n"}
    assert _found(tmp_path, files) == [IN_USED_CLASS, IN_LEFT_CLASS, IN_USED]


def test_what_its_own_file_looks_up_may_be_any_function(tmp_path: Path) -> None:
    files = {**FILES, "net.py": f"{NET}\n\ndef step(name):\n    return globals()[name]\n"}
    assert _found(tmp_path, files) == ALL


WRAPPED = """import functools
import time

import torch


def timed(function):
    @functools.wraps(function)
    def run(*args):
        start = time.time()
        result = function(*args)
        print(function.__name__, time.time() - start)
        return result

    return run


def named(function):
    name = function.__name__

    def run(*args):
        print(name)
        return function(*args)

    return run


def kept(function):
    STEPS.append(function)

    def run(*args):
        return function(*args)

    return run


STEPS = []


def used(x):
    return x


@WRAPPER
def left(x):
    y = torch.zeros(3)
    y.clamp(0, 1)
    return y
"""


@pytest.mark.parametrize(
    ("wrapper", "is_kept"),
    [
        ("timed", False),
        ("named", False),
        ("torch.no_grad()", False),
        ("kept", True),
        ("unknown", True),
        ("unknown()", True),
    ],
)
def test_a_decorator_that_keeps_nothing_names_nothing(tmp_path: Path, wrapper: str, *, is_kept: bool) -> None:
    text = WRAPPED.replace("WRAPPER", wrapper)
    files = FILES | {"net.py": text, "train.py": f"from net import used\n{REST}"}
    assert bool(_found(tmp_path, files)) is is_kept


METHODS = """import torch
from torch import nn


class Used(nn.Module):
    def forward(self, x):
        return self.step(x)

    def step(self, x):
        return x

    def _left(self, x):
        y = torch.zeros(3)
        y.clamp(0, 1)
        return y
"""
IN_METHOD = 14


def test_a_private_method_that_nothing_names_is_left_out(tmp_path: Path) -> None:
    assert _found(tmp_path, FILES | {"net.py": METHODS}) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_left", "left"),
        ("_left", "_apply"),
        ("nn.Module", "Trainer"),
        ("return self.step(x)", "return self._left(x)"),
        ("return self.step(x)", "return getattr(self, '_' + x)()"),
        ("return self.step(x)", "return getattr(self, '_left')()"),
    ],
)
def test_a_method_that_somebody_may_call_counts(tmp_path: Path, old: str, new: str) -> None:
    assert _found(tmp_path, FILES | {"net.py": METHODS.replace(old, new)}) == [IN_METHOD]


def test_a_private_method_that_another_file_calls_counts(tmp_path: Path) -> None:
    files = FILES | {"net.py": METHODS, "other.py": "def look(net):\n    return net._left(1)\n"}
    assert _found(tmp_path, files) == [IN_METHOD]


def test_a_private_method_that_a_base_calls_counts(tmp_path: Path) -> None:
    base = "from torch import nn\n\n\nclass Base(nn.Module):\n    def _left(self, x):\n        return x\n\n"
    files = {
        "net.py": METHODS.replace("nn.Module", "Base") + "\nfrom base import Base\n",
        "base.py": base + "    def run(self, x):\n        return self._left(x)\n",
    }
    assert _found(tmp_path, FILES | files) == [IN_METHOD]
