"""What a rule is about, for reading in a terminal, and the list of all rules."""

from collections.abc import Iterable

import msgspec

from mllint.diagnostics import Applicability, Severity
from mllint.output.machine import render
from mllint.output.style import Style
from mllint.rule import Rule


class Page(msgspec.Struct, frozen=True):
    """A code that mllint can report, with its documentation (Markdown, headings from ``##`` on)."""

    code: str
    name: str
    message: str
    docs: str
    fix: Applicability | None = None
    frameworks: tuple[str, ...] = ()
    since: str = "0.1.0"
    is_default: bool = True
    severity: Severity = Severity.ERROR
    topic: str = ""

    @property
    def summary(self) -> str:
        """The first paragraph of the documentation, on one line."""
        paragraphs = (text.strip() for text in self.docs.split("\n\n"))
        return next((" ".join(text.split()) for text in paragraphs if text and not text.startswith("#")), self.message)


OWN_PAGES = (
    Page(
        code="ML000",
        name="internal-error",
        message="mllint or one of its rules failed",
        docs="""\
## What it means

A rule raised an error at this place: a bug in mllint. The rule is left out for this file, the
other rules went on. The run ends with exit code 2, so that it is not taken for a clean one.

Please report it, with the line of source that the finding names.
""",
    ),
    Page(
        code="ML001",
        name="syntax-error",
        message="the file is not Python that mllint can read",
        docs="""\
## What it means

The file has a syntax error, is Python 2, does not decode in its encoding, holds NUL bytes, or nests
deeper than any parser goes. `--fix` leaves it as it is. Of a program that only a former Python can run
(`print loss`, `x.cuda(async=True)`), or with a comment that is no UTF-8, which Python imports but does
not run, or in which a function has a parameter twice, the rest was checked; of any other nothing else
was. The other files went on. Lines of IPython (`!pip install torch`, `%matplotlib inline`), as in a
notebook that was saved as a program, count as if they were not there; there are no fixes in such a
file.

Of a notebook each cell that cannot be read is reported, and the others are checked and mended all the same. What is no
notebook of format 4 (broken JSON, a former format) is reported as a whole.

It is reported only for files that name a framework: others are never parsed.
""",
    ),
    Page(
        code="ML002",
        name="unused-suppression",
        message="this suppression silences nothing",
        fix=Applicability.SAFE,
        severity=Severity.WARNING,
        is_default=False,
        docs="""\
## What it does

Finds comments that silence a rule where the rule finds nothing: the code was mended since, or moved
away from its comment, or the rule has learned better. It reads `# mllint: ignore[...]`,
`# mllint: file-ignore[...]`, and in `# noqa: ...` the codes of mllint.

## Why is this bad?

The comment says that something is wrong here and known to be, which is no longer true. It will also
silence the next finding at this place, which nobody has seen yet.

## Example

```python
import torch

x = torch.zeros(3)
x = x.cuda()  # noqa: E501, ML101
```

## Use instead

```python
import torch

x = torch.zeros(3)
x = x.cuda()  # noqa: E501
```

## What it leaves alone

It runs only if it is selected by name (`--extend-select ML002`): what a rule finds may change with
every version of mllint, and a comment that one version needs would be a finding of the next. It
says nothing about a code unless every rule that the code names was run on the file: a run with
`--select ML1,ML002` says nothing about `# noqa: ML501`. It says nothing about source that
stands alone, such as that on standard input without a file name: a finding may need the files
beside it. Codes of other tools, a `# noqa` without codes, comments in files that cannot be parsed,
and the codes ML000 to ML003 are left alone.

flake8 does not show its `noqa` comments to plugins, so there only mllint's own comments are judged.

## Fix safety

The fix is safe: it takes out the codes that silence nothing, and the directive when none is left.
Other codes, other directives and the remaining text of the comment stay. No fix is offered where that
text would turn into a directive.

## References

- [Configuration: silencing a finding](../configuration.md)
""",
    ),
    Page(
        code="ML003",
        name="unreadable-file",
        message="a file or folder could not be read",
        docs="""\
## What it means

A path does not exist, may not be read, or is a symbolic link that leads nowhere or round in a
circle. The other files went on. When none of the paths exists, the exit code is 2.
""",
    ),
)


def page_of(rule: Rule) -> Page:
    """The page of a rule."""
    return Page(
        code=rule.code,
        name=rule.name,
        message=rule.message,
        docs=rule.docs.strip() + "\n",
        fix=rule.applicability,
        frameworks=tuple(sorted(rule.frameworks)),
        since=rule.since,
        is_default=rule.is_default,
        severity=rule.severity,
        topic=rule.topic,
    )


def markdown(page: Page) -> str:
    """The whole page."""
    facts = [f"Since mllint {page.since}", _FIXES[page.fix]]
    if page.frameworks:
        facts.append(", ".join(page.frameworks))
    if not page.is_default:
        facts.append("off unless selected")
    return f"# {page.name} ({page.code})\n\n*{' · '.join(facts)}*\n\n{page.docs}"


def rendered(page: Page, *, width: int) -> str:
    """The whole page with colours and emphasis for a terminal of that width."""
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), force_terminal=True, width=min(width, 100))
    with console.capture() as capture:
        console.print(Markdown(markdown(page), code_theme="ansi_dark"))
    return capture.get()


def listing(pages: Iterable[Page], style: Style) -> list[str]:
    """A line a rule: code, name, whether it mends, and its message."""
    pages = sorted(pages, key=lambda page: page.code)
    longest = max((len(page.name) for page in pages), default=0)
    return [
        f"{style.code(page.code)}  {page.name:<{longest}}  {page.fix.value if page.fix else '-':<7}  {page.message}"
        for page in pages
    ]


def as_json(pages: Iterable[Page]) -> str:
    """All that is known of the rules, as an array of objects."""
    return render(
        [
            {
                "code": page.code,
                "name": page.name,
                "message": page.message,
                "fix": page.fix.value if page.fix else None,
                "frameworks": list(page.frameworks),
                "since": page.since,
                "default": page.is_default,
                "severity": page.severity.value,
                "docs": page.docs,
            }
            for page in sorted(pages, key=lambda page: page.code)
        ]
    )


_FIXES = {
    None: "no fix",
    Applicability.DISPLAY: "fix shown, never applied",
    Applicability.UNSAFE: "fix with `--fix --unsafe-fixes`",
    Applicability.SAFE: "fix with `--fix`",
}
