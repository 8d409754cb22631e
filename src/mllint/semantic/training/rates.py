"""Schedulers that are made to count epochs or batches, and stepped for the other."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.kinds import kind_at_sight
from mllint.semantic.events.makers import Made, makers_of
from mllint.semantic.events.owners import seen_from
from mllint.semantic.events.steps import Attempt, Branches, Event, Kind, Loop
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.graph.data_sources import yields_data
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.training.data_loops import is_next
from mllint.semantic.training.guards import counts_to_length, divisors, is_there_at_most
from mllint.semantic.training.lambda_rates import falls_by, shares
from mllint.semantic.training.runs import Run
from mllint.semantic.training.schedules import (
    Construction,
    all_constructions_of,
    constructions_of,
    seen_from_maker,
    steps_of_optimizer,
)
from mllint.semantic.values import File, Object, Options, is_object
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import (
    argument,
    called_on,
    constant,
    dotted_path,
    has_star_arguments,
    integer_literal,
    items_of,
    last_word,
    leaves_loop,
)
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_PER_EPOCH = {
    "StepLR": ("step_size",), "MultiStepLR": ("milestones",), "ExponentialLR": ("gamma",),
    "CosineAnnealingLR": ("T_max",), "StepDecay": ("step_size",), "MultiStepDecay": ("milestones",),
    "ExponentialDecay": ("gamma",), "CosineAnnealingDecay": ("T_max",), "PolynomialLR": ("total_iters",),
    "PolynomialDecay": ("decay_steps",), "LinearLR": ("total_iters", "total_steps"),
    "LambdaLR": ("lr_lambda",), "LambdaDecay": ("lr_lambda",),
    "PiecewiseDecay": ("boundaries",), "OneCycleLR": ("total_steps", "steps_per_epoch"),
    "CyclicLR": ("step_size_up",), "LinearWarmup": ("warmup_steps",),
    "get_linear_schedule_with_warmup": ("num_training_steps",),
    "get_cosine_schedule_with_warmup": ("num_training_steps",),
    "get_cosine_with_hard_restarts_schedule_with_warmup": ("num_training_steps",),
    "get_polynomial_decay_schedule_with_warmup": ("num_training_steps",),
}  # fmt: skip
"""The arguments of schedulers that say after how many steps something happens."""
_FUNCTION = "lr_lambda"
"""That one of them which is a function of the number of steps."""
_BASES = ("LRScheduler", "_LRScheduler")
"""What all of them are, as annotations say."""


def stepped_too_often(model: "Model", call: cst.Call) -> str | None:
    """What of a scheduler's construction counts epochs, where it surely steps for every batch."""
    return _of_all(model, call, _counts_epochs)


def stepped_too_seldom(model: "Model", call: cst.Call) -> str | None:
    """What of a scheduler's construction counts batches, where it surely steps once an epoch."""
    return _of_all(model, call, _counts_batches)


def _of_all(model: "Model", call: cst.Call, judge: Callable[[Run, Event], str | None]) -> str | None:
    answer: str | None = None
    for occurrence in model.runs.each(call) if _may_count(model, call) else ():
        event = occurrence.event
        if (
            event.kind is not Kind.SCHEDULE
            or event.thing is None
            or (isinstance(event.node, cst.Call) and event.node.args)
        ):
            return None
        answer = judge(occurrence.run, event)
        if answer is None:
            return None
    return answer


def _may_count(model: "Model", step: cst.Call) -> bool:
    """Whether what steps may be one of the schedulers that count, to go by its file alone."""
    stepped = called_on(step)
    if stepped is None or kind_at_sight(model, stepped) not in (None, "scheduler"):
        return False
    value = model.value(stepped)
    name = value.name.rpartition(".")[2] if isinstance(value, Object) else None
    return not name or name in _PER_EPOCH or name in _BASES  # without a name it may be one of several


def _counts_epochs(run: Run, schedule: Event) -> str | None:
    assert schedule.thing is not None
    if len(schedule.loops) < 2:
        return None
    batches, epochs = schedule.loops[-1], schedule.loops[-2]
    if not isinstance(batches.node, cst.For):
        return None
    updates = [step for step in steps_of_optimizer(run, schedule.thing) if step.loops[-1:] == (batches,)]
    # In every round, where there is one, or whenever the optimizer does, which has gradients of some batches added up.
    is_regular = is_there_at_most(schedule, batches) or any(
        _arms(schedule, batches) == _arms(step, batches) and _adds_up(step, batches) for step in updates
    )
    if not updates or not is_regular or not _is_loop_over_data(batches) or leaves_loop(batches.node.body):
        return None
    # One is made for a training that begins, say, and one for a training that goes on.
    makings = all_constructions_of(schedule.thing)
    found = [_epochs_counted(run, made, batches.node, epochs, _home_of(schedule, made)) for made in makings]
    return found[0] if found and None not in found else None


def _home_of(schedule: Event, made: Construction) -> Frame:
    """The run in which a scheduler is made, also of a function that gives it back: ``scheduler = build(optimizer)``."""
    homes = (item.frame for item in constructions_of(schedule.frame, schedule.thing) if item.call is made[2])
    return next(homes, None) or Frame(made[0].scope.model)


def _epochs_counted(run: Run, made: Construction, batches: cst.For, epochs: Loop, home: Frame) -> str | None:
    """What of the construction of a scheduler that steps for every batch counts epochs."""
    for name in _arguments_of(made[1]):
        given = _given(made, name)
        if given is None:
            continue
        text = f"{name}={_written(given)}" if _written(given) else name
        if _mentions_length(home.model, given, made[0]):
            return None
        if name == _FUNCTION:
            return name if _function_counts_epochs(run, made, epochs, Made(home, made[2]), given) else None
        if name == "gamma":
            gamma = constant(given)
            if isinstance(gamma, float) and 0 < gamma <= _FASTEST:
                return text
        elif _is_bound_of(epochs, made[0], given, run, home) or (
            # A warm-up of three steps is none of three epochs because there are as many of them.
            name != "warmup_steps" and _is_within(epochs, home.model, given)
        ):
            return text
        if name == "step_size" and _falls_too_fast(made, given) and _gives_batches(batches):
            return text
    return None


def _function_counts_epochs(
    run: Run, made: Construction, epochs: Loop, maker: Made, function: cst.BaseExpression
) -> bool:
    """Whether the function of a scheduler divides the steps by the number of epochs, and by nothing else, or falls so
    fast that the learning rate would be gone after some hundred batches.
    """
    numbers = shares(maker, function)
    if any(_mentions_length(item.home.model, item.number, made[0]) for item in numbers):
        return False
    if falls_by(maker, function, lambda factor: factor <= _FASTEST):
        return True
    return bool(numbers) and all(_is_bound_of(epochs, made[0], item.number, run, item.home) for item in numbers)


def _gives_batches(node: cst.For) -> bool:
    """Whether a loop runs over what is spelled as a loader, or takes the next batch in every round."""
    return yields_data(node.iter) or any(
        is_next(item.value) for item in subtree(node.body) if isinstance(item, cst.Assign)
    )


def _arms(event: Event, loop: Loop) -> list[tuple[Branches | Attempt, int]]:
    """The branches between a loop and an event."""
    inner = event.within(loop)
    return [(around.step, around.arm) for around in inner if isinstance(around.step, (Branches, Attempt))]


def _adds_up(step: Event, loop: Loop) -> bool:
    """Whether an optimizer steps whenever the gradients of some batches are added up, of fewer than there are."""
    tests = [arm for arm, _ in _arms(step, loop) if isinstance(arm, Branches)]
    return len(tests) == 1 and bool(divisors(tests[0])) and not counts_to_length(tests[0])


def _falls_too_fast(made: Construction, size: cst.BaseExpression) -> bool:
    """Whether a learning rate that falls every few steps would be gone after some hundred batches."""
    steps, given = integer_literal(size), _given(made, "gamma")
    gamma = constant(given) if given is not None else _USUAL_GAMMA
    is_known = steps is not None and steps > 0 and isinstance(gamma, float) and 0 < gamma < 1
    return is_known and gamma ** (1 / steps) <= _FASTEST  # type: ignore[operator]


_USUAL_GAMMA = 0.1
"""The gamma of ``StepLR`` and ``StepDecay`` where none is given."""


_FASTEST = 0.99
"""After a thousand batches a learning rate that falls faster than this is below a ten-thousandth of what it was."""


def _counts_batches(run: Run, schedule: Event) -> str | None:
    makings = all_constructions_of(schedule.thing)
    assert schedule.thing is not None
    if not makings or not schedule.loops:
        return None
    epochs = schedule.loops[-1]
    sizes = [_batches_to_peak(item, epochs) for item in makings]
    # Of several that it may be, only of this one it is certain whatever the others count.
    made = next((item for item, size in zip(makings, sizes, strict=True) if size is not None), makings[0])
    if len(makings) > 1 and not any(sizes):
        return None
    updates = steps_of_optimizer(run, schedule.thing)
    inner = [step for step in updates if epochs in step.loops and step.loops[-1] is not epochs]
    if not inner or len(inner) != len([step for step in updates if epochs in step.loops]):
        return None
    home, in_epoch = _home_of(schedule, made), _given(made, "steps_per_epoch")
    if not all(_is_loop_over_data(step.loops[-1]) or _has_rounds(step.loops[-1], in_epoch) for step in inner):
        return None
    if any(event.kind is Kind.SCHEDULE and event is not schedule and event.concerns(schedule.thing)
           for event in run.events):  # fmt: skip
        return None
    if any(sizes):
        return f"step_size_up={next(filter(None, sizes))}"
    for name in _arguments_of(made[1]):
        given = _given(made, name)
        if given is not None and name == _FUNCTION:
            parts = shares(Made(home, made[2]), given)
            lengths = (_mentions_length(item.home.model, item.number, made[0], of_data=True) for item in parts)
            return name if any(lengths) else None
        if given is not None and name == "steps_per_epoch" and constant(given) != 1:
            return f"{name}={_written(given)}" if _written(given) else name
        if given is not None and _mentions_length(home.model, given, made[0], of_data=True):
            return f"{name}={_written(given)}" if _written(given) else name
    return None


_CYCLIC = "CyclicLR"
_USUAL_SIZE = 2_000
"""The ``step_size_up`` of ``CyclicLR`` where none is given; Paddle's has to be given one."""
_MANY_STEPS = 1_000


def _batches_to_peak(made: Construction, epochs: Loop) -> int | None:
    """The steps to the first peak of a cyclic rate, where so many can only be batches: no training has more epochs."""
    if made[1].name.rpartition(".")[2] != _CYCLIC:
        return None
    given = _given(made, "step_size_up")
    is_open = has_star_arguments(made[2]) or made[1].framework != "torch"
    size = integer_literal(given) if given is not None else None if is_open else _USUAL_SIZE
    rounds = rounds_of(epochs, or_default=True)
    is_many = size is not None and size >= max(_MANY_STEPS, rounds or 0)
    return size if is_many else None


def _arguments_of(made: Object) -> tuple[str, ...]:
    return _PER_EPOCH.get(made.name.rpartition(".")[2], ())


def _given(made: Construction, name: str) -> cst.BaseExpression | None:
    names = lookup.parameters(made[1].name)
    given = argument(made[2], names.index(name) if name in names else None, name)
    return None if given is None else given.value


def _written(node: cst.BaseExpression) -> str | None:
    """A short expression as it is written."""
    number = constant(node)
    if isinstance(number, (int, float)):
        return str(number)
    if isinstance(node, (cst.List, cst.Tuple)):
        items = [_written(item.value) for item in node.elements]
        return None if None in items or len(items) > 4 else f"[{', '.join(item or '' for item in items)}]"
    return dotted_path(node)


def _is_loop_over_data(loop: Loop) -> bool:
    """Whether a loop runs over something that is no small number of rounds."""
    node = loop.node
    if not isinstance(node, cst.For):
        return False
    call = node.iter if isinstance(node.iter, cst.Call) else None
    name = (dotted_path(call.func) or "").rpartition(".")[2] if call is not None else ""
    return name != "range" or (
        call is not None and not any(integer_literal(arg.value) is not None for arg in call.args[-1:])
    )


def _has_rounds(loop: Loop, number: cst.BaseExpression | None) -> bool:
    """Whether a loop has a literal number of rounds, and more than one of them."""
    rounds = None if number is None else integer_literal(number)
    return rounds is not None and rounds > 1 and rounds_of(loop) == rounds


def _mentions_length(
    model: "Model", node: cst.BaseExpression, kept: Binding, steps: int = 4, of_data: bool = False
) -> bool:
    """Whether the length of something, or surely of data, goes into a number: ``len(loader) * epochs``.

    What is divided by it counts no batches: ``iterations // len(loader)`` are epochs. ``kept`` binds the scheduler.
    """
    for item in _multiplied(node):
        if isinstance(item, cst.Call) and isinstance(item.func, cst.Name) and item.func.value == "len" and item.args:
            value = model.value(item.args[0].value)
            if not of_data or is_object(value, "loader") or yields_data(item.args[0].value):
                return True
        if steps > 0 and isinstance(item, (cst.Name, cst.Attribute)):
            for inner in model.reaching(item):
                made = assigned(inner)
                home = inner.scope.model
                if made is not None and inner is not kept and _mentions_length(home, made, inner, steps - 1, of_data):
                    return True
    return False


def _multiplied(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of an expression, but for what something is divided by."""
    yield node
    is_quotient = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Divide, cst.FloorDivide))
    parts = [node.left] if is_quotient and isinstance(node, cst.BinaryOperation) else children(node)
    for part in parts:
        yield from _multiplied(part)


def _bound(loop: Loop) -> cst.BaseExpression | None:
    """The ``n`` of ``for epoch in range(n)``, ``range(start, n)``, ``range(1, n + 1)``, ``range(start, start + n)``."""
    node = loop.node
    call = run_over(node.iter) if isinstance(node, cst.For) else None
    if not isinstance(call, cst.Call) or last_word(call.func) not in ("range", "trange"):
        return None
    positional = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if not positional:
        return None
    start, last = (None, positional[0]) if len(positional) == 1 else positional[:2]
    if not isinstance(last, cst.BinaryOperation) or not isinstance(last.operator, cst.Add):
        return last
    for one, other in ((last.left, last.right), (last.right, last.left)):
        if start is not None and dotted_path(start) is not None and dotted_path(one) == dotted_path(start):
            return other
    return last.left if integer_literal(last.right) == 1 else last


def rounds_of(loop: Loop, *, or_default: bool = False) -> int | None:
    """The literal number of rounds of a loop, also where a name is bound to it.

    Or the default of the parameter or option that it is, which is one of the numbers that it may be.
    """
    bound = _bound(loop)
    return None if bound is None else _number(loop.frame, bound, or_default)


def _is_bound_of(loop: Loop, binding: Binding, node: cst.BaseExpression, run: Run, home: Frame) -> bool:
    """Whether a number, or each of a list of them, is made of the number of rounds of a loop, and of literals."""
    bound = _bound(loop)
    if bound is None:
        return False
    named = loop.frame.thing(bound)
    if named is None:
        return False
    parts = items_of(node)
    is_named = partial(_is_named, loop.frame, named, binding, run, home)
    return bool(parts) and all(_is_share_of(item, is_named) for item in parts)


def _is_named(frame: Frame, named: Thing, binding: Binding, run: Run, home: Frame, node: cst.BaseExpression) -> bool:
    """Whether an expression where a scheduler is made stands for a number that a run knows as ``named``."""
    is_given_back = home.function is not None and home.scope is not binding.scope
    made = home.thing(node) if is_given_back else seen_from_maker(run, binding, node)
    if made is None:
        return False
    if made == named or any(seen_from(frame, root, named, made) == named for root in named.roots):
        return True
    # Kept beside: `self.epochs = config["epochs"]`, in the function that makes the scheduler of the same.
    kept = [maker for root in named.roots for maker in makers_of(root, named.path)] if named.path else []
    return len(kept) == 1 and (
        kept[0].scope is binding.scope
        and not kept[0].path
        and kept[0].value is not None
        and seen_from_maker(run, kept[0], kept[0].value) == made
    )


def _is_share_of(node: cst.BaseExpression, is_number: Callable[[cst.BaseExpression], bool]) -> bool:
    """``epochs``, ``epochs // 2``, ``int(0.75 * epochs)``: at most the number itself."""
    if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
        return is_number(node)
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value in ("int", "round")
        and node.args
    ):
        return _is_share_of(node.args[0].value, is_number)
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, (cst.Divide, cst.FloorDivide)):
            return isinstance(constant(node.right), (int, float)) and _is_share_of(node.left, is_number)
        if isinstance(node.operator, cst.Multiply):
            for factor, other in ((node.left, node.right), (node.right, node.left)):
                number = constant(factor)
                if isinstance(number, (int, float)) and number <= 1:
                    return _is_share_of(other, is_number)
    return False


def _is_within(loop: Loop, model: "Model", node: cst.BaseExpression) -> bool:
    """Whether literal numbers lie within the literal number of rounds of the loop over the epochs."""
    rounds = rounds_of(loop, or_default=True)
    if rounds is None or not 2 <= rounds <= _MOST_EPOCHS:
        return False
    numbers = [integer_literal(item) for item in items_of(_display_of(model, node))]
    return bool(numbers) and all(number is not None and number <= rounds for number in numbers)


def _display_of(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """The list or number that a name stands for where a scheduler is made, also in a file of settings."""
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return node
    return _bound_once(Frame(model, function_around(model, node)), node) or node


def _bound_once(frame: Frame, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a name is bound to, or a name of another file that is nothing but a setting: ``config.epochs``."""
    holder = frame.value(node.value) if isinstance(node, cst.Attribute) else None
    if isinstance(node, cst.Attribute) and isinstance(holder, File):
        roots = list(holder.model.scope(holder.model.tree.module).bindings.get(node.attr.value, ()))
    else:
        thing = frame.thing(node)
        roots = [] if thing is None or thing.path else [root for root in thing.roots if isinstance(root, Binding)]
    return assigned(roots[0]) if len(roots) == 1 else None


_MOST_EPOCHS = 2_000


def _number(frame: Frame, node: cst.BaseExpression, or_default: bool, steps: int = 4) -> int | None:
    """A literal, also one that a name is bound to once, or that is the default of a parameter or option."""
    number = integer_literal(node)
    if number is not None or steps == 0:
        return number
    holder = frame.value(node.value) if isinstance(node, cst.Attribute) else None
    if isinstance(node, cst.Attribute) and isinstance(holder, Options):
        if not or_default:
            return None
        default = default_of_option(holder.model, frame.model, node.attr.value)
        return None if default is None else integer_literal(default)
    bindings = frame.model.reaching(node) if isinstance(node, cst.Name) else ()
    if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER:
        given = frame.given(bindings[0])
        if given is not None:
            return _number(*given, or_default, steps - 1)
        if not or_default:
            return None
        parameter = bindings[0].node
        is_open = frame.call is not None and has_star_arguments(frame.call)
        default = None if is_open or not isinstance(parameter, cst.Param) else parameter.default
        return None if default is None else integer_literal(default)
    bound = _bound_once(frame, node)
    return None if bound is None else integer_literal(bound)
