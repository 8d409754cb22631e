"""From one file's bytes to its findings: gate, decode, parse, dispatch, spans, suppressions."""

import ast
import dataclasses
from collections.abc import Iterable, Iterator

import libcst as cst
import msgspec

from mllint.context import Context, Targets
from mllint.diagnostics import Diagnostic, Edit, Fix, Location, Result, Severity, Status
from mllint.doubts import demoted
from mllint.edits import NodeEdit, NodeFix, Side
from mllint.registry import RuleSet
from mllint.rule import Finding, Handler, Rule
from mllint.semantic.files.testing import is_meant_to_fail
from mllint.semantic.model import Model
from mllint.semantic.names.in_use import is_out_of_use
from mllint.semantic.project import Project
from mllint.syntax.bare import NotBareError, bare_tree
from mllint.syntax.former import FormerPython, readable_tree, refused_by_compiler
from mllint.syntax.gate import is_notebook, may_hold_suppressions, names_framework
from mllint.syntax.leftovers import leftover
from mllint.syntax.parse import ParseError, parse
from mllint.syntax.python_places import FullTreeNeededError, PythonPlaces
from mllint.syntax.source import DecodingError, Source, syntax_tree
from mllint.syntax.spans import RoundTripError, spans_of
from mllint.syntax.suppressions import Suppressions
from mllint.syntax.walk import Tree
from mllint.unused_suppressions import is_python, with_unused_suppressions


class _Found(msgspec.Struct, frozen=True):
    """A finding with the rule that made it and its fix, still in terms of nodes."""

    rule: Rule
    finding: Finding
    fix: NodeFix | None


class _Failure(msgspec.Struct, frozen=True):
    """A rule that raised: at which node, and what."""

    rule: Rule
    node: cst.CSTNode
    error: Exception


def lint(
    data: bytes,
    path: str,
    rules: RuleSet,
    *,
    targets: Targets | None = None,
    project: Project | None = None,
    noqa: bool = True,
    python_tree: ast.AST | None = None,
) -> Result:
    """All findings of the chosen rules in one file. Raises nothing.

    ``project`` is where sibling files are looked up; without it only this file is read. Without
    ``noqa`` only mllint's own suppression comments count (flake8 reads the others itself).
    ``python_tree`` is the file's ``ast``, where the caller has it already; who hands it over is given
    findings without fixes.
    """
    words, source, may_fire = data, None, True
    # Without its siblings a file may lack findings that a comment is there for.
    checks_suppressions = rules.checks_suppressions and project is not None
    try:
        if is_notebook(data, path):
            # Its words do not stand in its bytes as they are, and what its cells have given is nobody's business.
            source = Source.from_bytes(data, path)
            words = source.program.encode()
        may_fire = rules.may_fire(words)
        if not may_fire and not (checks_suppressions and may_hold_suppressions(words)):
            return Result(path, Status.SKIPPED)
        source = source or Source.from_bytes(data, path)
    except DecodingError as error:
        is_ours = may_fire and names_framework(data)
        said = _unreadable(path, str(error), Location(error.row, 1), error.help)
        return said if is_ours else Result(path, Status.SKIPPED)
    suppressions = Suppressions(source, noqa=noqa)
    if suppressions.file_is_skipped:
        return Result(path, Status.SKIPPED)
    if may_fire:
        result = _lint(source, suppressions, rules, targets or Targets(), project, python_tree)
        result = result if source.is_writable else _without_fixes(result)
        result = _with_faults(result, source) if names_framework(words) else _without_syntax_error(result)
    else:
        result = Result(path, Status.OK if is_python(source.program) else Status.SKIPPED)
    if checks_suppressions and result.status is Status.OK:
        return with_unused_suppressions(result, source, suppressions, rules)
    return result


def _lint(
    source: Source,
    suppressions: Suppressions,
    rules: RuleSet,
    targets: Targets,
    project: Project | None,
    python_tree: ast.AST | None,
) -> Result:
    """The findings in a file on which a rule may fire."""
    path = source.path
    if project is not None:
        project.begin(path)
    bare = _bare_model(source, project, python_tree)
    if bare is not None:
        rules = _rules_that_find(source, bare, rules, targets)
        functions = bare.tree.by_type.get(cst.Parameters, ())
        former = bare.tree.former or refused_by_compiler(source.program, functions)
        if former is not None:
            return _of_former_python(source, former, bare, rules, suppressions, targets)
        if not rules.rules:
            return Result(path, Status.OK)
        result = _placed_by_python(source, bare, rules, suppressions, targets, python_tree)
        if result is not None:
            return result
    try:
        model = Model(Tree(parse(source)), source, project)
    except ParseError as error:
        left = leftover(source.text, error.row)
        message, help_text = (str(error), None) if left is None else left
        return _unreadable(path, message, source.placed(Location(error.row, error.column)), help_text)
    try:
        return _analyse(source, model, rules, suppressions, targets)
    except RoundTripError:
        # LibCST loses a backslash between two statements. Python's tree has the places; there are no fixes then.
        known = None if bare is None else syntax_tree(source.program)
        result = None if bare is None else _placed_by_python(source, bare, rules, suppressions, targets, known)
        return result or _failed(path, "the syntax tree does not reproduce this file, so its findings cannot be placed")
    # The last line of defence: whatever goes wrong in one file, the other files of a run go on.
    except Exception as error:  # noqa: BLE001
        return _failed(path, f"mllint failed on this file: {_one_line(error)}")
    finally:
        # Nobody will ask it again, and it would hold its many nodes until the collector comes.
        model.forget()
        model.let_go()


def _bare_model(source: Source, project: Project | None, python_tree: ast.AST | None) -> Model | None:
    """The model over the nodes without whitespace: the one from when another file asked for it, or a new one.

    A new one is kept for the files that will ask. ``None`` where the file cannot be read this way.
    """
    model = None if project is None else project.recall(source)
    if model is not None:
        return model
    kept = None if project is None else project.recall_tree(source)
    try:
        model = Model(kept or bare_tree(source.program, python_tree), source, project)
    except NotBareError:
        return None
    if project is not None:
        project.keep(model)
    return model


def _rules_that_find(source: Source, model: Model, rules: RuleSet, targets: Targets) -> RuleSet:
    """The rules that find something in the nodes without whitespace: where there are none, no full parse is needed.

    A rule that cannot do without whitespace raises; then only the full tree can tell.
    """
    context = Context(source, model.tree, model, targets)
    finding: dict[str, Rule] = {}
    for rule, handler, nodes in rules.dispatch.visits(model.tree, context):
        if rule.code not in finding and _finds_something(handler, nodes, context):
            finding[rule.code] = rule
    return RuleSet(finding.values())


def _findings(handler: Handler, node: cst.CSTNode, context: Context) -> Iterator[Finding]:
    """What a handler finds at a node, but for what a test has put there for its error, and for code out of use."""
    return (
        finding
        for finding in handler(node, context)
        if not is_meant_to_fail(context.model, finding.node) and not is_out_of_use(context.model, finding.node)
    )


def _finds_something(handler: Handler, nodes: Iterable[cst.CSTNode], context: Context) -> bool:
    """Whether a handler finds something in nodes without whitespace, or cannot do without it."""
    for node in nodes:
        try:
            for _ in _findings(handler, node, context):
                return True
        except Exception:  # noqa: BLE001
            return True
    return False


def _analyse(
    source: Source,
    model: Model,
    rules: RuleSet,
    suppressions: Suppressions,
    targets: Targets,
) -> Result:
    tree = model.tree
    context = Context(source, tree, model, targets)
    found: list[_Found] = []
    failures: list[_Failure] = []
    failed: set[str] = set()
    for rule, handler, nodes in rules.dispatch.visits(tree, context):
        for node in nodes:
            if rule.code in failed:
                break
            try:
                findings = _findings(handler, node, context)
                found += [_Found(rule, item, item.fix() if item.fix else None) for item in findings]
            # A rule that fails must not take the other rules' findings with it: an ML000 names it, and it is left out.
            except Exception as error:  # noqa: BLE001
                failures.append(_Failure(rule, node, error))
                failed.add(rule.code)
    if not found and not failures:
        return Result(source.path, Status.OK)
    return _sorted_out(source, _place(source, tree, found, failures), suppressions)


def _placed_by_python(
    source: Source,
    model: Model,
    rules: RuleSet,
    suppressions: Suppressions,
    targets: Targets,
    python_tree: ast.AST | None,
) -> Result | None:
    """The findings in nodes without whitespace, placed by Python's syntax tree and without fixes.

    ``None`` where there is no such tree, or where it does not say enough.
    """
    if not isinstance(python_tree, ast.Module):
        return None
    try:
        places = PythonPlaces(source, model.tree, python_tree)
        context = Context(source, model.tree, model, targets, places)
        diagnostics = [
            _diagnostic(source, _Found(rule, item, None), {id(item.node): places.span(item.node)})
            for rule, handler, nodes in rules.dispatch.visits(model.tree, context)
            for node in nodes
            for item in _findings(handler, node, context)
        ]
    # Whatever is missing in these nodes, the full tree has it; and what is a mistake is found out there.
    except Exception:  # noqa: BLE001
        return None
    return _sorted_out(source, diagnostics, suppressions)


def _lacks_whitespace(error: Exception) -> bool:
    """Whether something went wrong because nodes without whitespace were asked for theirs."""
    if isinstance(error, AttributeError) and isinstance(error.obj, cst.CSTNode):
        return any(field.name == error.name for field in dataclasses.fields(error.obj))
    return isinstance(error, FullTreeNeededError)


def _of_former_python(
    source: Source, former: FormerPython, model: Model, rules: RuleSet, suppressions: Suppressions, targets: Targets
) -> Result:
    """What is found in a file that only a former Python can run, or IPython: without fixes, each finding where Python's
    tree says that it is, or what is around it.
    """
    places = PythonPlaces(source, model.tree, readable_tree(source.program)[0])
    written_for = _RENAMED_ASYNC if "async" in former.message else None
    targets = msgspec.structs.replace(targets, torch=targets.torch or written_for)
    context = Context(source, model.tree, model, targets, places)
    found: list[Diagnostic] = []
    for rule, handler, nodes in rules.dispatch.visits(model.tree, context):
        for node in nodes:
            try:
                for item in _findings(handler, node, context):
                    spans = {id(item.node): places.around(item.node)}
                    found.append(_diagnostic(source, _Found(rule, item, None), spans))
            # As in every other file, a rule that fails takes nothing else with it.
            except Exception as error:  # noqa: BLE001
                if _lacks_whitespace(error):
                    continue  # it takes the blanks and comments, which nobody can tell here
                found.append(_internal_error(source, _Failure(rule, node, error), {id(node): places.around(node)}))
                break
    result = _sorted_out(source, found, suppressions)
    if not former.message:
        return result
    where = source.placed(Location(former.row, former.column))
    help_text = _ASYNC_HELP if "async" in former.message else _FORMER_HELP
    own = _own("ML001", "syntax-error", former.message, source.path, where, help_text)
    status = Status.SYNTAX_ERROR if result.status is Status.OK else result.status
    diagnostics = sorted((own, *result.diagnostics), key=lambda diagnostic: diagnostic.sort_key)
    return msgspec.structs.replace(result, status=status, diagnostics=tuple(diagnostics))


def _sorted_out(source: Source, diagnostics: Iterable[Diagnostic], suppressions: Suppressions) -> Result:
    """The result of a file with these diagnostics: those that are reported and those that comments silence."""
    reported: list[Diagnostic] = []
    suppressed: list[Diagnostic] = []
    for diagnostic in sorted(set(diagnostics), key=lambda diagnostic: diagnostic.sort_key):
        silent = suppressions.silences(diagnostic.code, source.unplaced(diagnostic.location).row, diagnostic.name)
        (suppressed if silent else reported).append(diagnostic)
    status = Status.INTERNAL_ERROR if any(item.code == "ML000" for item in reported) else Status.OK
    return Result(source.path, status, tuple(reported), tuple(suppressed))


def _place(source: Source, tree: Tree, found: list[_Found], failures: list[_Failure]) -> Iterable[Diagnostic]:
    """Turn findings in terms of nodes into diagnostics in terms of places, with one pass over the tree.

    Raises:
        RoundTripError: the tree does not print the file, so it does not have its places.
    """
    wanted: list[cst.CSTNode] = [item.finding.node for item in found]
    wanted += [failure.node for failure in failures]
    for item in found:
        for edit in item.fix.edits if item.fix else ():
            wanted += (edit.first, edit.last)
    spans = spans_of(tree.module, wanted, source.program)
    placed = [_diagnostic(source, item, spans) for item in found]
    placed += [_internal_error(source, failure, spans) for failure in failures]
    return placed


def _diagnostic(source: Source, item: _Found, spans: dict[int, tuple[int, int]]) -> Diagnostic:
    start, end = spans[id(item.finding.node)]
    location = source.placed(source.location(start))
    return Diagnostic(
        code=item.rule.code,
        name=item.rule.name,
        message=item.finding.message or item.rule.message,
        help=item.finding.help or item.rule.help,
        path=source.path,
        location=location,
        end_location=source.placed(source.location(end)),
        noqa_row=location.row,
        fix=_fix(source, item.fix, spans) if item.fix else None,
        severity=item.rule.severity,
    )


def _fix(source: Source, fix: NodeFix, spans: dict[int, tuple[int, int]]) -> Fix:
    placed = (_edit(source, edit, spans) for edit in fix.edits)
    changes = (edit for edit in placed if edit.content != source.text[edit.start : edit.end])
    edits = tuple(sorted(changes, key=lambda edit: (edit.start, edit.end)))
    return demoted(Fix(fix.message, fix.applicability, edits), fix.edits, source)


def _edit(source: Source, edit: NodeEdit, spans: dict[int, tuple[int, int]]) -> Edit:
    start = spans[id(edit.first)][edit.first_side is Side.END]
    end = spans[id(edit.last)][edit.last_side is Side.END]
    # The parser is shown `\n` for a lone `\r`, so this is what edits made of the tree have in them.
    content = edit.content.replace("\n", "\r") if source.has_returns_only else edit.content
    places = (source.placed(source.location(offset)) for offset in (start, end))
    return Edit(start, end, content, *places)


def _internal_error(source: Source, failure: _Failure, spans: dict[int, tuple[int, int]]) -> Diagnostic:
    location = source.placed(source.location(spans[id(failure.node)][0]))
    message = f"rule {failure.rule.code} `{failure.rule.name}` failed here: {_one_line(failure.error)}"
    return _own("ML000", "internal-error", message, source.path, location)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _failed(path: str, message: str) -> Result:
    return Result(path, Status.INTERNAL_ERROR, (_own("ML000", "internal-error", message, path, Location(1, 1)),))


def _unreadable(path: str, message: str, location: Location, help_text: str | None = None) -> Result:
    diagnostic = _own("ML001", "syntax-error", " ".join(message.split()), path, location, help_text)
    return Result(path, Status.SYNTAX_ERROR, (diagnostic,))


def _without_fixes(result: Result) -> Result:
    """The result of a file into which nothing can be written."""
    left = tuple(msgspec.structs.replace(item, fix=None) for item in result.diagnostics)
    return msgspec.structs.replace(result, diagnostics=left)


def _with_faults(result: Result, source: Source) -> Result:
    """The result with what is wrong with the parts of the file that cannot be read."""
    if not source.faults:
        return result
    said = (
        _own("ML001", "syntax-error", fault.message, source.path, fault.place, fault.help or _CELL_HELP)
        for fault in source.faults
    )
    # What stands there in the program is nothing that the cell says.
    unread = {fault.place.cell for fault in source.faults} - {None}
    found = (item for item in result.diagnostics if item.location.cell not in unread)
    diagnostics = sorted((*said, *found), key=lambda diagnostic: diagnostic.sort_key)
    status = Status.SYNTAX_ERROR if result.status is Status.OK else result.status
    return msgspec.structs.replace(result, status=status, diagnostics=tuple(diagnostics))


def _without_syntax_error(result: Result) -> Result:
    """The result of a file that names no framework: whether it can be read is nobody's question."""
    left = tuple(item for item in result.diagnostics if item.code != "ML001")
    if len(left) == len(result.diagnostics):
        return result
    status = Status.OK if left else Status.SKIPPED
    return msgspec.structs.replace(
        result, status=status if result.status is Status.SYNTAX_ERROR else result.status, diagnostics=left
    )


_OWN_HELP = {
    "ML000": "this is a bug in mllint: please report it; the other rules have run",
    "ML001": "mend the syntax or the encoding; nothing else in this file was checked",
}
_CELL_HELP = "mend the syntax; nothing else in this cell was checked"
_RENAMED_ASYNC = (0, 4)
"""The PyTorch that gave ``async`` another name. Later ones took it with a warning, so that this tells when a file was
written, and is no proof; no Python from 3.7 on reads it.
"""
_FORMER_HELP = "mend the syntax; what else is found in this file has no fix till then"
_ASYNC_HELP = "write `non_blocking=` for `async=`; what else is found in this file has no fix till then"


def _own(code: str, name: str, message: str, path: str, location: Location, help_text: str | None = None) -> Diagnostic:
    """A diagnostic of mllint itself."""
    said = help_text or _OWN_HELP[code]
    return Diagnostic(code, name, message, said, path, location, location, location.row, severity=Severity.ERROR)
