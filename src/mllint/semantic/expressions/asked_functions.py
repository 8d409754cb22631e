"""Functions without a call in places that ask for their truth."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.truth import is_tested
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Instance, Module

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Arguments that are flags, whatever takes them.
_FLAGS = frozenset({
    "pin_memory", "enabled", "persistent_workers", "use_cuda", "use_gpu", "cuda", "gpu", "use_amp", "amp", "fp16",
    "bf16",
})  # fmt: skip
_TEST_DECORATORS = frozenset({"unittest.skipIf", "unittest.skipUnless"})


def is_asked(model: "Model", mention: cst.BaseExpression) -> bool:
    """Whether the truth of a mention is asked for: where it stands, by what it is given to, or through a variable."""
    if is_tested(model, mention) or _is_flag(model, mention):
        return True
    parent, above = model.tree.parent(mention), _assigned_by(model, mention)
    conjunction = isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And)
    if above is None:
        return conjunction
    if any(_is_called_somewhere(model, word) for word in _attributes_given(model, mention)):
        return False
    if any(_is_called(model, node) for node in _reads(model, above)):
        return False
    return conjunction or _is_tested_later(model, mention)


def may_be_called_elsewhere(model: "Model", mention: cst.BaseExpression) -> bool:
    """Whether an object keeps a mention whose truth its file does not ask for: another file may call it."""
    return bool(_attributes_given(model, mention)) and not _is_tested_later(model, mention)


def _reads(model: "Model", statement: cst.Assign | cst.AnnAssign) -> list[cst.BaseExpression]:
    """Where what a statement binds is read."""
    return list(uses_of_bound(model, statement))


def _is_tested_later(model: "Model", mention: cst.BaseExpression) -> bool:
    """Whether the truth of the variable that gets a mention is asked for."""
    statement = _assigned_by(model, mention)
    read = [] if statement is None else _reads(model, statement)
    return any(is_tested(model, node) or _is_flag(model, node) for node in read)


def _assigned_by(model: "Model", mention: cst.BaseExpression) -> cst.Assign | cst.AnnAssign | None:
    """The assignment of a mention, or of the conjunction that it is a part of."""
    held: cst.CSTNode = mention
    above = model.tree.parent(held)
    while isinstance(above, cst.BooleanOperation):
        held, above = above, model.tree.parent(above)
    return above if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is held else None


def _attributes_given(model: "Model", mention: cst.BaseExpression) -> list[str]:
    """The names of the attributes of objects of the project that get a mention, or a conjunction with it."""
    match _assigned_by(model, mention):
        case cst.Assign(targets=targets):
            found = [item.target for item in targets]
        case cst.AnnAssign(target=target):
            found = [target]
        case _:
            found = []
    return [target.attr.value for target in found if isinstance(target, cst.Attribute) and _is_own(model, target)]


def _is_own(model: "Model", attribute: cst.Attribute) -> bool:
    """Whether an attribute is one of an object of a class of the project."""
    owner = model.value(attribute.value)
    return isinstance(owner, (Instance, Module)) and owner.definition is not None


def _is_called_somewhere(model: "Model", word: str) -> bool:
    """Whether an attribute of this name of some object of the project is called in the file."""
    calls = model.calls_by_word.get(word, ())
    return any(isinstance(call.func, cst.Attribute) and _is_own(model, call.func) for call in calls)


def _is_called(model: "Model", node: cst.BaseExpression) -> bool:
    parent = model.tree.parent(node)
    return isinstance(parent, cst.Call) and parent.func is node


def _is_flag(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is given for an argument that is a flag."""
    arg = model.tree.parent(node)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
        return False
    if arg.keyword is None:
        return call.args[0] is arg and model.qualified_name(call.func) in _TEST_DECORATORS
    # `argparse` does not call a default; `click` does.
    is_option = isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument"
    return arg.keyword.value in _FLAGS or (arg.keyword.value == "default" and is_option)
