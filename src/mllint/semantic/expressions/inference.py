"""The value of an expression, from what binds the names in it."""

import builtins
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.semantic.expressions import attributes, evidence, picked
from mllint.semantic.expressions.annotations import annotated, declares_no_tensor
from mllint.semantic.expressions.arguments import given
from mllint.semantic.expressions.calls import called, called_method
from mllint.semantic.expressions.imports import imported, of_own_frameworks
from mllint.semantic.expressions.iteration import element_of, item_of
from mllint.semantic.expressions.module_lists import MODULE_DICTS, MODULE_LISTS, module_at
from mllint.semantic.expressions.narrowed import after_test, conditional, narrowed
from mllint.semantic.expressions.tables import dict_item, dict_value
from mllint.semantic.expressions.tensors import arithmetic, attachment, is_one_size, may_be_filled
from mllint.semantic.names.changes import new_items
from mllint.semantic.names.definitions import FunctionInfo, is_receiver
from mllint.semantic.names.inner_bindings import InnerBindings
from mllint.semantic.names.scopes import Binding, BindingKind, Scope, ToldBinding, redefinition
from mllint.semantic.values import (
    Array,
    Batch,
    ClassObject,
    Elements,
    Function,
    Instance,
    Loaded,
    Mapping,
    Method,
    Module,
    Nothing,
    Number,
    Object,
    Other,
    Output,
    Repeated,
    Symbol,
    Tensor,
    Text,
    Unfinished,
    Value,
    join,
    may_be_more_exact,
    more_exact,
)
from mllint.syntax.shape import (
    constant,
    dotted_path,
    integer_literal,
    string_literal,
    subscript_index,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_STRINGS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)


class Inference:
    """Values of the expressions of one file, derived on demand and remembered."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._values: dict[int, Value | None] = {}
        self._bindings: dict[int, Value | None] = {}
        self._returned: dict[int, Value | None] = {}
        self._inner = InnerBindings(model)
        self._starred: dict[tuple[int, str], Value | None] = {}
        self._derivation = model.derivation

    # -- expressions -----------------------------------------------------------------------------------------------

    def value(self, node: cst.CSTNode) -> Value | None:
        """What an expression is; ``None`` when that is not certain."""
        try:
            return self._values[id(node)]
        except KeyError:
            return self._derivation.once(self._values, id(node), node, self._evaluate)

    def _evaluate(self, node: cst.CSTNode) -> Value | None:
        evaluator = _EVALUATORS.get(type(node))
        return None if evaluator is None else evaluator(self, node)

    def _name(self, node: cst.Name) -> Value | None:
        if node.value in ("True", "False"):
            return Number()
        if node.value == "None":
            return Nothing()
        inner = self.inner_binding(node)
        if inner is not None:
            return self.binding_value(inner[0]) if inner[0] is not None else None
        return self._key(node, node.value)

    def inner_binding(self, node: cst.Name) -> tuple[Binding | None] | None:
        """The binding of a name by the expressions around it, in a one-tuple; ``None``: there is none."""
        return self._inner.binding(node)

    def begins_with_inner(self, node: cst.BaseExpression) -> bool:
        """Whether a path is one of what the expressions around bind: ``p.grad`` in ``[p.grad for p in parameters]``.

        What the scope binds to such a path is of another thing, that has the same name.
        """
        while node.__class__ is cst.Attribute:
            node = node.value
        return node.__class__ is cst.Name and self.inner_binding(node) is not None

    def _key(self, node: cst.BaseExpression, key: str) -> Value | None:
        """The value of a name or dotted path at its place, through the scopes."""
        scope: Scope | None = self.model.scope_of(node)
        assert scope is not None
        if key not in scope.outer_names:
            found = self._in_scope(scope, key, node)
            if found is not None:
                return found[0]
        if "." in key:
            return None
        scope = scope.parent
        while scope is not None:
            if not scope.is_class and key in scope.bindings:
                return self._from_inner_scope(scope, key)
            scope = scope.parent
        return self._builtin(key)

    def _in_scope(self, scope: Scope, key: str, node: cst.BaseExpression) -> tuple[Value | None] | None:
        reaching = scope.told(key, node)
        if not reaching.bindings:
            # In a function, a name that is bound anywhere in it is its own everywhere in it.
            return (None,) if "." not in key and scope.is_function and key in scope.bindings else None
        result = self.joined(reaching.bindings)
        if reaching.may_be_unbound and "." in key:
            return (join(result, self._attribute_of_object(node)),)
        return (result,)

    def _from_inner_scope(self, scope: Scope, key: str) -> Value | None:
        """The value of an outer scope's name as a function sees it: whichever binding ran last."""
        bindings = scope.bindings[key]
        if len(bindings) == 1:
            return self.binding_value(bindings[0])
        # Nobody sees it once it is deleted, or defined anew before anything runs.
        seen = (item for item in bindings if type(item.node) is not cst.Del)
        return self.joined(tuple(item for item in seen if redefinition(self.model.tree, item.node) is None))

    def joined(self, bindings: tuple[Binding, ...]) -> Value | None:
        """What all of the bindings agree on."""
        if len(bindings) > 1 and all(item.kind is BindingKind.IMPORT for item in bindings):
            values = of_own_frameworks([self.binding_value(item) for item in bindings])
            return values[0] if len(values) == 1 else reduce(join, values)
        result: Value | None = None
        seen = False
        for binding in bindings:
            value = self.binding_value(binding)
            result = value if not seen else join(result, value)
            seen = True
            if result is None:
                return None
        return result

    def _builtin(self, name: str) -> Value | None:
        stars = self.model.scope(self.model.tree.module).bindings.get("*", ())
        given: list[Value | None] = []
        for binding in stars:
            found = imported(self.model, binding, name)
            if isinstance(found, Unfinished):
                continue  # what is being looked for, by another way
            if found is not None and not self._is_in_branch(binding.node):
                given.clear()
            given += [] if found is None else [found]
        if given:
            return reduce(join, of_own_frameworks(given))
        if stars:
            return Symbol(f"builtins.{name}") if name in _KEYWORD_LIKE_BUILTINS else None
        return Symbol(f"builtins.{name}") if name in _BUILTINS else None

    def _is_in_branch(self, statement: cst.CSTNode) -> bool:
        """Whether an import may be left out: it does not stand at the outside of its file."""
        row = self.model.tree.parent(statement)
        return row is not None and self.model.tree.parent(row) is not self.model.tree.module

    def exported(self, name: str) -> Value | None:
        """What ``from this_file import name`` gives."""
        scope = self.model.scope(self.model.tree.module)
        if name not in scope.bindings:
            return self._from_stars(name) if "*" in scope.bindings else None
        return self.joined(scope.reaching_end(name).bindings)

    def _from_stars(self, name: str) -> Value | None:
        """What a file hands on that it imports with ``*``, itself perhaps by many ways; two may import each other."""
        return self._derivation.once(self._starred, (id(self.model), name), name, self._builtin)

    # -- bindings --------------------------------------------------------------------------------------------------

    def binding_value(self, binding: Binding) -> Value | None:
        """What a binding binds its key to."""
        if binding.scope.model is not self.model:
            return binding.scope.model.binding_value(binding)
        try:
            return self._bindings[id(binding)]
        except KeyError:
            return self._derivation.once(self._bindings, id(binding), binding, self._derive_binding)

    def _derive_binding(self, binding: Binding) -> Value | None:
        derived = self._bound(binding)
        if isinstance(derived, Tensor) and derived.attached is False and may_be_filled(self.model, binding):
            derived = replace(derived, attached=None)
        # What a call gives may be a list of zeros to which losses were added.
        is_counted = isinstance(derived, Number) and isinstance(binding.value, cst.Call)
        if derived is None or isinstance(derived, Output) or is_counted or self._may_be_spent(derived):
            spent = self.model.backward.proof(binding)
            if spent is not None:
                return spent.refine(derived, self.model.framework)
        if derived is None or isinstance(derived, Output):
            proof = evidence.from_use(self.model, binding)
            if isinstance(derived, Output) and isinstance(proof, Tensor) and proof.attached is None:
                return replace(proof, attached=derived.attached)
            return proof or derived
        return derived

    @staticmethod
    def _may_be_spent(derived: Value) -> bool:
        """Whether a call of ``backward()`` may say more of a tensor: that it has a graph, or one element."""
        if not isinstance(derived, Tensor):
            return False
        return derived.attached is None or (derived.scalar is None and not derived.one_element)

    def _bound(self, binding: Binding) -> Value | None:
        match binding.kind:
            case BindingKind.ASSIGN:
                return None if binding.value is None else self._part(self.value(binding.value), binding.path)
            case BindingKind.ANNOTATED:
                assert isinstance(binding.node, cst.AnnAssign)
                assigned = None if binding.value is None else self.value(binding.value)
                is_open = isinstance(assigned, Nothing) and not (binding.scope.is_function and "." not in binding.key)
                if assigned is not None and not is_open:  # what others read may be filled before
                    return assigned
                return annotated(self.model, binding.node.annotation.annotation)
            case BindingKind.AUGMENTED:
                assert isinstance(binding.node, cst.AugAssign)
                changed = self.value(binding.node.target)
                if isinstance(changed, Module) and changed.name in MODULE_LISTS:
                    return changed  # it has grown
                return arithmetic(self.model, changed, self.value(binding.node.value), binding.node)
            case BindingKind.LOOP:
                return None if binding.value is None else self._part(item_of(self.model, binding.value), binding.path)
            case BindingKind.IMPORT:
                return imported(self.model, binding, binding.key)
            case BindingKind.FUNCTION:
                assert isinstance(binding.node, cst.FunctionDef)
                return Function(self.model.function_info(binding.node))
            case BindingKind.CLASS:
                assert isinstance(binding.node, cst.ClassDef)
                return ClassObject(self.model.class_info(binding.node))
            case BindingKind.PARAMETER:
                return self._parameter(binding)
            case BindingKind.NARROWED:
                return None if binding.value is None else narrowed(self.model, binding)
            case BindingKind.TOLD:
                assert isinstance(binding, ToldBinding)
                return after_test(self.model, binding.fact)
        return None

    def _part(self, value: Value | None, path: tuple[int | None, ...]) -> Value | None:
        """The part of an unpacked value that a path of indexes leads to."""
        for index in path:
            if isinstance(value, Elements):
                value = value.items[index] if index is not None and index < len(value.items) else None
            else:
                value = element_of(value)
        return value

    def _parameter(self, binding: Binding) -> Value | None:
        function = binding.scope.node
        assert isinstance(function, cst.FunctionDef)
        assert isinstance(binding.node, cst.Param)
        info = self.model.function_info(function)
        if is_receiver(info, binding) and info.owner is not None:
            owner = info.owner
            return ClassObject(owner) if "builtins.classmethod" in info.decorators else owner.instance()
        if function.params.star_arg is binding.node:
            annotation = binding.node.annotation
            return Repeated(None if annotation is None else annotated(self.model, annotation.annotation), "tuple")
        if function.params.star_kwarg is binding.node:
            annotation = binding.node.annotation
            return Mapping(item=None if annotation is None else annotated(self.model, annotation.annotation))
        if binding.node.annotation is not None and not self._is_meant_as_class(binding, binding.node):
            declared = annotated(self.model, binding.node.annotation.annotation)
            if declared is not None:
                is_open = may_be_more_exact(declared)  # what the calls pass costs much, and would say nothing else
                return more_exact(declared, given(self.model, info, binding.node)) if is_open else declared
        passed = given(self.model, info, binding.node)
        if passed is None and info.name == "forward" and info.owner is not None and info.owner.framework is not None:
            if declares_no_tensor(self.model, binding):
                return None
            default = binding.node.default
            return Output(info.owner.framework) if default is None or constant(default) is None else None
        return passed

    # -- functions -------------------------------------------------------------------------------------------------

    def _is_meant_as_class(self, binding: Binding, parameter: cst.Param) -> bool:
        """Whether the annotation of a parameter names what its instances are: ``norm: nn.Module = nn.LayerNorm``.

        So it does where ``issubclass`` is asked about it, too.
        """
        default = None if parameter.default is None else self.value(parameter.default)
        if isinstance(default, ClassObject) or (
            isinstance(default, Symbol) and lookup.class_(default.name) is not None
        ):
            return True
        tests = self.model.calls_by_word.get("issubclass", ())
        tested = [call.args[0].value for call in tests if call.args]
        return any(isinstance(node, cst.Name) and binding in self.model.reaching(node) for node in tested)

    def returned(self, info: FunctionInfo) -> Value | None:
        """What a call of a function of this file gives back."""
        return self._derivation.once(self._returned, id(info), info, self._derive_returned)

    def _derive_returned(self, info: FunctionInfo) -> Value | None:
        if not info.is_transparent or not info.is_plain:
            return None
        if info.owner is not None and info.is_left_open:
            return None  # what the method gives back that is put in its place
        result: Value | None = Nothing()
        for statement in info.scope.returns:
            value = Nothing() if statement.value is None else self.value(statement.value)
            result = join(result, value)
            if result is None:
                break
        if result is None and info.node.returns is not None:
            return annotated(self.model, info.node.returns.annotation)
        return result

    # -- compound expressions --------------------------------------------------------------------------------------

    def _attribute(self, node: cst.Attribute) -> Value | None:
        key = dotted_path(node)
        if key is not None:
            scope = self.model.scope_of(node)
            if key in scope.bindings and not self.begins_with_inner(node):
                found = self._in_scope(scope, key, node)
                if found is not None:
                    return found[0]
        return self._attribute_of_object(node)

    def _attribute_of_object(self, node: cst.BaseExpression) -> Value | None:
        assert isinstance(node, cst.Attribute)
        return attributes.attribute(self.model, self.value(node.value), node.attr.value)

    def _call(self, node: cst.Call) -> Value | None:
        return called(self.model, node)

    def _item(self, base: Elements, position: int, node: cst.BaseExpression) -> Value | None:
        """An item of what a name is bound to: the one that it was made with, or one that was put in its place."""
        if not -len(base.items) <= position < len(base.items):
            return None
        others = new_items(self.model, node) if base.mutable else []
        return None if others is None else reduce(join, map(self.value, others), base.items[position])

    def _subscript(self, node: cst.Subscript) -> Value | None:
        base = self.value(node.value)
        index = subscript_index(node)
        match base:
            case Unfinished():
                return base
            case Tensor():
                # Indexing a 0-d tensor raises; of anything else the rank of the result is not followed.
                return Tensor(base.framework, base.attached)
            case Elements() if (position := integer_literal(index)) is not None:
                return self._item(base, position, node.value)
            case Elements() if index is None:
                return Repeated(None)
            case Batch():
                return Batch(base.framework)
            case Output():
                return base
            case Repeated():
                return base if index is None else base.item
            case Array():
                return Array()
            case Loaded() if (text := string_literal(index)) is not None:
                return Loaded(base.framework, base.call, (*base.keys, text))
            case Mapping():
                text = string_literal(index)
                return dict_value(base) if text is None else dict_item(base, text)
            case Instance():
                return called_method(base, "__getitem__")
            case Text():
                return Text()
            case Other(kind="size") if index is not None:
                return Number()
            case Module() if base.name in attributes.MODULE_SEQUENCES and isinstance(node.slice[0].slice, cst.Slice):
                return Module(base.framework, base.name)
            case Module() if base.name in attributes.MODULE_SEQUENCES | MODULE_DICTS:
                return module_at(self.model, node, base) or Module(base.framework)
            case Symbol():
                return picked.entry(base.name, index)
            case None if is_one_size(node):
                return Number()
        return None

    def _binary(self, node: cst.BinaryOperation) -> Value | None:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Text) and isinstance(node.operator, cst.Modulo):
            return Text()
        if isinstance(node.operator, cst.Divide) and isinstance(left, Object) and left.kind == "path":
            return left
        if isinstance(node.operator, cst.Add):
            other = right if isinstance(node.left, _STRINGS) else left if isinstance(node.right, _STRINGS) else node
            if other is None or isinstance(other, Method):
                return Text()  # nothing but text is added to text: `args.folder + "/model.pt"`
        return arithmetic(self.model, left, right, node)

    def _unary(self, node: cst.UnaryOperation) -> Value | None:
        value = self.value(node.expression)
        if isinstance(node.operator, cst.Not):
            return Number()
        if isinstance(value, Unfinished):
            return value
        if isinstance(value, Tensor):
            return Tensor(value.framework, attachment(self.model, node, (value,)), value.scalar)
        return value if isinstance(value, (Number, Array)) else None

    def _comparison(self, node: cst.Comparison) -> Value | None:
        if any(isinstance(item.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for item in node.comparisons):
            return Number()
        values = [
            self.value(node.left),
            *(self.value(item.comparator) for item in node.comparisons),
        ]
        for value in values:
            if isinstance(value, Tensor):
                ranks = [item.scalar if isinstance(item, Tensor) else isinstance(item, Number) for item in values]
                return Tensor(value.framework, False, True if all(ranks) else None)
        if any(isinstance(value, Array) for value in values):
            return Array()
        known = (Number, Text, Nothing)
        return Number() if all(isinstance(value, known) for value in values) else None

    def _boolean(self, node: cst.BooleanOperation) -> Value | None:
        return join(self.value(node.left), self.value(node.right))

    def _conditional(self, node: cst.IfExp) -> Value | None:
        return conditional(self.model, node)

    def _sequence(self, node: cst.Tuple | cst.List) -> Value | None:
        mutable = isinstance(node, cst.List)
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            return Repeated(None)
        return Elements(tuple(self.value(element.value) for element in node.elements), mutable)

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp) -> Value | None:
        return Repeated(self.value(node.elt))

    def _walrus(self, node: cst.NamedExpr) -> Value | None:
        return self.value(node.value)


_KEYWORD_LIKE_BUILTINS = frozenset({
    "super", "isinstance", "len", "range", "enumerate", "zip", "print", "float", "int", "dict", "list", "tuple",
})  # fmt: skip
"""What no `from module import *` is taken to give another meaning."""
_BUILTINS = frozenset(dir(builtins))


_EVALUATORS: dict[type[cst.CSTNode], Callable[[Inference, Any], Value | None]] = {
    cst.Name: Inference._name,
    cst.Attribute: Inference._attribute,
    cst.Call: Inference._call,
    cst.Subscript: Inference._subscript,
    cst.BinaryOperation: Inference._binary,
    cst.UnaryOperation: Inference._unary,
    cst.Comparison: Inference._comparison,
    cst.BooleanOperation: Inference._boolean,
    cst.IfExp: Inference._conditional,
    cst.Tuple: Inference._sequence,
    cst.List: Inference._sequence,
    cst.ListComp: Inference._comprehension,
    cst.GeneratorExp: Inference._comprehension,
    cst.SetComp: Inference._comprehension,
    cst.NamedExpr: Inference._walrus,
    cst.Integer: lambda _, __: Number(),
    cst.Float: lambda _, __: Number(),
    cst.Imaginary: lambda _, __: Number(),
    cst.SimpleString: lambda _, node: Text(string_literal(node)) if isinstance(constant(node), str) else None,
    cst.ConcatenatedString: lambda _, node: Text(string_literal(node)),
    cst.FormattedString: lambda _, __: Text(),
    cst.Dict: lambda self, node: Mapping(node, home=self.model),
    cst.DictComp: lambda self, node: Mapping(node, home=self.model),
}
