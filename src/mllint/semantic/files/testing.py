"""What belongs to a test: there a thing lives as long as the test, and may be there for the error that it raises."""

from pathlib import PurePath
from typing import TYPE_CHECKING

import libcst as cst

from mllint.syntax.shape import dotted_path, is_main_guard

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Parts of the modules that tests are made with: pytest, unittest, torch.testing, absl.testing, nose.
_MODULES = frozenset({"pytest", "unittest", "testing", "nose", "nose2"})
# What projects hand on to their tests under their own modules' names.
_NAMES = frozenset({"TestCase", "run_tests"})
_FOLDERS = frozenset({"test", "tests"})


def is_test_code(model: "Model") -> bool:
    """Whether a file is made of tests or for them, by what it imports, or by where it is: ``tests/networks.py``."""
    asked = ("is test code", "")
    if asked not in model.remembered:
        model.remembered[asked] = _is_named_as_a_test(model) or _imports_tools_for_tests(model)
    found: bool = model.remembered[asked]
    return found


def _is_named_as_a_test(model: "Model") -> bool:
    # `test_model.py` of a research project runs the model on the test data: the name alone does not tell.
    path = PurePath(model.source.path)
    folders = (path.parent.name, *(() if model.project is None else _folders(model.path, model.project.root)))
    # Beside the tests stands what they are made with. In a folder called `test` a project may run its model.
    if "tests" in (path.stem, *folders):
        return True
    is_named = path.stem.startswith("test_") or path.stem.endswith("_test")
    return is_named and not _FOLDERS.isdisjoint(folders)


def is_benchmark(model: "Model") -> bool:
    """Whether a file measures how long things take, by its name: ``bench_attention.py``, ``benchmark_matmul.py``."""
    return PurePath(model.source.path).name.startswith("bench")


def may_be_of_tests(path: PurePath, root: PurePath) -> bool:
    """Whether a file of a project may be one of tests, by its name or that of a folder: then it says nothing of how
    the project is used.
    """
    folders = _folders(path, root)
    return path.stem.startswith("test_") or path.stem.endswith("_test") or not _FOLDERS.isdisjoint(folders)


def _folders(path: PurePath, root: PurePath) -> tuple[str, ...]:
    """The names of the folders of a project that lead to a file."""
    return path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()


def _imports_tools_for_tests(model: "Model") -> bool:
    if model.names_by_word.keys().isdisjoint(_MODULES | _NAMES):
        return False
    modules = [alias.name for statement in model.tree.by_type.get(cst.Import, ()) for alias in statement.names]
    for statement in model.tree.by_type.get(cst.ImportFrom, ()):
        if statement.module is not None:
            modules.append(statement.module)
        if not isinstance(statement.names, cst.ImportStar) and any(
            alias.evaluated_name in _NAMES or alias.evaluated_name in _MODULES for alias in statement.names
        ):
            return True
    return any(not _MODULES.isdisjoint((dotted_path(module) or "").split(".")) for module in modules)


def is_in_a_test(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place is in a function that is run as a test, by its name; ``test(model, loader)`` is none."""
    return any(_is_test(ancestor) for ancestor in model.tree.ancestors(node) if isinstance(ancestor, cst.FunctionDef))


def is_in_test_of_tests(model: "Model", node: cst.CSTNode) -> bool:
    """The same, in a file that has the word in its name, wherever that stands: ``step_1_test_forward.py``."""
    words = PurePath(model.source.path).stem.lower().split("_")
    return ("test" in words or "tests" in words) and is_in_a_test(model, node)


def _is_test(function: cst.FunctionDef) -> bool:
    name = function.name.value
    return name.startswith("test") and (name != "test" or not function.params.params)


def ends_a_test(model: "Model", statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement is the last that a test does, or a file that tries itself out: to see that it runs."""
    function, line = model.enclosing_function(statement), model.tree.parent(statement)
    block = None if line is None else model.tree.parent(line)
    if line is None or not isinstance(block, cst.IndentedBlock) or block.body[-1] is not line:
        return False
    return is_tried_out(model, line) if function is None else _is_test(function)


def is_meant_to_fail(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a test waits for the error of what stands at a place: ``with pytest.raises(TypeError):``."""
    return any(
        isinstance(ancestor, cst.With) and any(_waits_for_error(item.item) for item in ancestor.items)
        for ancestor in model.tree.ancestors(node)
    )


def _waits_for_error(context: cst.BaseExpression) -> bool:
    last = context_name(context).rpartition(".")[2]
    return last == "raises" or last.startswith("assertraises")


def context_name(context: cst.BaseExpression) -> str:
    """The dotted name of a context manager, or of what makes it, in small letters; empty where it has none."""
    return (dotted_path(context.func if isinstance(context, cst.Call) else context) or "").lower()


def is_tried_out(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place is right under ``if __name__ == "__main__":``, in no loop: a module tries itself out, once."""
    is_guarded = False
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef, cst.For, cst.While)):
            return False
        is_guarded = is_guarded or (isinstance(ancestor, cst.If) and is_main_guard(ancestor.test))
    return is_guarded
