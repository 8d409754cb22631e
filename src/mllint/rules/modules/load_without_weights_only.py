"""## What it does

Finds calls of `torch.load` without `weights_only` in projects that allow a PyTorch below 2.6; and, where 2.6 is
allowed, those of which the code below uses the result, or an entry of it, as an object: `torch.load("net.pt").eval()`,
`torch.load(path)["args"].lr`; or that read the very file to which the code saves an object, and nothing else:
`torch.save({"net": net.state_dict(), "args": args}, path)`; or of which an annotation says that they read a module or
an object of a class of the project: `session: Session = torch.load(path)`; or from which an entry is taken that is an
object wherever the code around saves all that are taken: `np.random.set_state(torch.load(path)["random"])` beside the
weights, where it saves `np.random.get_state()` there.

## Why is this bad?

A checkpoint is a pickle, and unpickling runs what the file says: whoever can change the file runs code on your machine.
With `weights_only=True` only tensors and plain Python values are read. That is the default since PyTorch 2.6; before,
it has to be said, and since 1.13 it can be. So since 2.6 a file with anything else in it (a whole module, an
`argparse.Namespace`, an array or a number of NumPy, the state of NumPy's generator, which has an array in it) raises an
`UnpicklingError`, unless `weights_only=False` is said.

## Example

```python
# target-version: torch=2.1
import torch

state = torch.load("model.pt", map_location="cpu")
```

## Use instead

```python
# target-version: torch=2.1
import torch

state = torch.load("model.pt", map_location="cpu", weights_only=True)
```

## What it leaves alone

Projects whose lowest PyTorch is below 1.13, and objects in those that stay below 2.6 (`torch==2.1.0`,
`torch>=1.13,<2.6`). Where the lowest is 2.6 or newer, or not known, files of which nothing says that
there is an object in them, what the code asks about first (`isinstance`, `hasattr`, or a `try` that catches the
error), entries that are read only where they are found and that nothing near saves, what is loaded as a whole and is
no module, since libraries may allow their own classes, and all where the files around it allow classes
(`add_safe_globals`) or put another function in the place of `torch.load`. `weights_only=False`, which somebody has
decided. `pickle_module=...`, beside which `weights_only=True` raises. For a PyTorch below 2.6 calls whose result is
used as a whole module, or read for an attribute that no plain value has, or has to be an object of a class of the
project, or has entries that NumPy computes with, or comes from the file to which the code saves one, or what is used
as one: these cannot be read this way. That file is also what the function beside writes (`save_checkpoint(name)`
beside `load_checkpoint(path)`), or all that the project saves with the entries that are read. What the code has written
itself into a temporary folder of its own, or its memory; what the same function has saved above, or saves where it is
not there yet (a cache); and what tests read. A second try where a load with `weights_only` has failed, and a first try
where the `except` reads with `weights_only=False`, of what PyTorch 2.6 refuses.

The lowest version is that of the `target-version` setting, or else of the project's requirements, which may also say
below which one it stays.

## Fix safety

Unsafe: `weights_only=True` refuses files that hold more than tensors and plain values, such as `argparse.Namespace` or
numbers of NumPy. `weights_only=False` runs whatever the file says; it is not offered where the code saves such
files itself.

## References

- [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
- [Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_after, replace
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.own_files import is_own_file
from mllint.semantic.checkpoints.refused import is_refused, may_hold_object
from mllint.semantic.checkpoints.saved_objects import is_saved_with_object
from mllint.semantic.files.testing import is_test_code
from mllint.syntax.shape import argument, constant, has_star_arguments
from mllint.syntax.walk import subtree

rule = Rule(
    code="ML429",
    message="before PyTorch 2.6 `torch.load` without `weights_only` runs any code in the file",
    help="write `weights_only=True`",
    frameworks=frozenset({"torch"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_REFUSED = "this file holds an object, which `torch.load` refuses since PyTorch 2.6"
_HELP_REFUSED = "save and load state dicts and plain values, or add `weights_only=False` if you trust the file"
_INTRODUCED, _DEFAULT = (1, 13), (2, 6)


@rule.on_call("torch.load")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call when the lowest PyTorch that the project allows unpickles everything, or refuses the file."""
    version = context.torch_version
    if not call.args or has_star_arguments(call) or (version is not None and version < _INTRODUCED):
        return
    given = argument(call, None, "weights_only")
    if (given is not None and constant(given.value) is not None) or argument(call, 2, "pickle_module") is not None:
        return
    is_newer = context.torch_below is None or context.torch_below > _DEFAULT
    if is_newer and is_refused(context.model, call) and not _is_other_way(call, context):
        saves_too = "save" in context.model.calls_by_word  # what it saves is what is to be changed
        yield Finding(call, _REFUSED, _HELP_REFUSED, fix=None if saves_too else lambda: _fix(call, given, "False"))
        return
    if version is None or version >= _DEFAULT:
        return
    if is_test_code(context.model) or is_own_file(context.model, call):
        return
    if may_hold_object(context.model, call) or _is_other_way(call, context):
        return
    if is_saved_with_object(context.model, call):
        return
    help_ = "add `weights_only=True`, if the file holds nothing but tensors and plain values"
    yield Finding(call, help=help_, fix=lambda: _fix(call, given, "True"))


def _fix(call: cst.Call, given: cst.Arg | None, value: str) -> NodeFix:
    text = f"weights_only={value}"
    edit = replace(given.value, value) if given else insert_after(call.args[-1].value, f", {text}")
    return NodeFix(f"add `{text}`", (edit,), Applicability.UNSAFE)


def _is_other_way(call: cst.Call, context: Context) -> bool:
    """Whether it stands where a version does not know ``weights_only``: a load with it failed, or was not possible."""
    child: cst.CSTNode = call
    for ancestor in context.model.tree.ancestors(call):
        other: cst.CSTNode | None = None
        if isinstance(ancestor, cst.Try) and isinstance(child, cst.ExceptHandler):
            other = ancestor.body
        elif isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test and _asks_version(ancestor.test):
            other = ancestor.orelse if child is ancestor.body else ancestor.body
        if other is not None and any(_gives_option(item) for item in subtree(other)):
            return True
        child = ancestor
    return False


def _gives_option(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and argument(node, None, "weights_only") is not None


def _asks_version(test: cst.BaseExpression) -> bool:
    """Whether a condition asks for the version of the framework, or whether a function takes the option."""
    words = (part.value for part in subtree(test) if isinstance(part, (cst.Name, cst.SimpleString)))
    return any("version" in word.lower() or "weights_only" in word for word in words)
