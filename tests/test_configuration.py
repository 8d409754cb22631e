"""Configuration that inherits, severities, which fixes count, the schema, and what shows all that."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

import mllint as package
from mllint import lint_source
from mllint.cli import cli
from mllint.configuration.files import Resolver
from mllint.configuration.settings import Configuration, ConfigurationError, Overrides, Settings
from mllint.configuration.table import Table, described_keys, keys_of, schema
from mllint.diagnostics import Applicability, Severity

SOURCE = "import torch\n\nx = torch.zeros(3)\nx.cuda()\nprint(x.sum() == float('nan'))\n"
UNSAFE = "import torch\n\nstate = torch.load('m.pt')\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder in which every test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def mllint(*arguments: str, source: str | None = None) -> Result:
    result = CliRunner().invoke(cli, arguments, input=source)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def found(*arguments: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(mllint("--output-format", "json", *arguments).stdout)
    return entries


def codes(*arguments: str) -> list[str]:
    return [entry["code"] for entry in found(*arguments)]


def resolved(folder: str) -> Configuration:
    return Resolver().for_folder(folder)


# --- extend ---------------------------------------------------------------------------------------


def test_a_file_is_laid_over_the_one_that_it_extends() -> None:
    write(
        "pyproject.toml",
        '[tool.mllint]\nextend-exclude = ["a"]\nforce-exclude = true\n[tool.mllint.lint]\nselect = ["ML1"]\n'
        'extend-select = ["ML203"]\nextend-ignore = ["ML102"]\n'
        'severity = {ML1 = "error", ML2 = "info"}\ntarget-version = {}\n'.replace("target-version = {}\n", ""),
    )
    write(
        "sub/mllint.toml",
        'extend = "../pyproject.toml"\nextend-exclude = ["b"]\n[lint]\nselect = ["ML4"]\n'
        'extend-select = ["ML501"]\nextend-ignore = ["ML103"]\nseverity = {ML2 = "warning"}\n',
    )
    inner = resolved("sub")
    assert inner.settings.select == ("ML4",)
    assert inner.settings.extend_select == ("ML203", "ML501")
    assert inner.settings.ignore == ("ML102", "ML103")
    assert inner.settings.severities == (("ML1", Severity.ERROR), ("ML2", Severity.WARNING))
    assert inner.files.extend_exclude == ("a", "b")
    assert inner.files.force_exclude
    assert inner.source is not None
    assert Path(inner.source).name == "mllint.toml"
    assert resolved(".").settings.select == ("ML1",)


def test_patterns_stay_relative_to_the_folder_of_their_file() -> None:
    write(
        "mllint.toml",
        'extend-exclude = ["sub/legacy", "build_*"]\n[lint.per-file-ignores]\n"sub/tests/*" = ["ML101"]\n'
        '"conftest.py" = ["ML5"]\n',
    )
    write("sub/mllint.toml", 'extend = "../mllint.toml"\nextend-exclude = ["new/x"]\n')
    for path in ("sub/legacy/a.py", "sub/new/x/a.py", "sub/build_1/a.py", "sub/tests/a.py", "sub/conftest.py"):
        write(path, SOURCE)
    for working_folder, path in ((".", "sub"), ("sub", ".")):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(working_folder)
            assert [(Path(item["filename"]).name, item["code"]) for item in found(path)] == [
                ("conftest.py", "ML101"),
                ("a.py", "ML501"),
            ]


def test_folders_with_odd_names_are_moved_to_too() -> None:
    write("a[b]*/mllint.toml", 'extend = "../base.toml"\nextend-exclude = ["x/y"]\n')
    write("base.toml", "")
    write("a[b]*/x/y/a.py", SOURCE)
    write("a[b]*/x/z.py", SOURCE)
    assert codes("a[b]*") == ["ML101", "ML501"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"mllint.toml": 'extend = "gone.toml"'}, "mllint.toml: `extend`: there is no file `gone.toml`"),
        ({"mllint.toml": 'extend = "mllint.toml"'}, "mllint.toml: `extend`: `mllint.toml` extends this file in turn"),
        (
            {"mllint.toml": 'extend = "a.toml"', "a.toml": 'extend = "mllint.toml"'},
            "a.toml: `extend`: `mllint.toml` extends this file in turn",
        ),
        ({"mllint.toml": 'extend = "a.toml"', "a.toml": "selct = []"}, "a.toml: unknown key `selct` (did you mean"),
        ({"mllint.toml": 'extend = "a.toml"', "a.toml": "select = ["}, "a.toml: is not valid TOML"),
        (
            {"mllint.toml": 'extend = "x/pyproject.toml"', "x/pyproject.toml": "[project]\n"},
            "mllint.toml: `extend`: `x/pyproject.toml` has no `[tool.mllint]` table",
        ),
        ({"mllint.toml": "extend = 3"}, "mllint.toml: `extend`: expected `str`, got `int`"),
    ],
)
def test_what_cannot_be_extended_names_the_file(files: dict[str, str], expected: str, folder: Path) -> None:
    for path, text in files.items():
        write(path, text)
    with pytest.raises(ConfigurationError) as caught:
        resolved(".")
    assert str(caught.value).startswith(f"{folder}/{expected}")


def test_the_command_line_extends_nothing() -> None:
    write("a.py", SOURCE)
    result = mllint("--config", 'extend = "a.toml"', "a.py")
    assert (result.exit_code, result.stderr) == (2, "mllint: error: --config: `extend` can stand in a file only\n")


def test_a_wrong_file_costs_its_own_folder_only() -> None:
    write("good/a.py", SOURCE)
    write("bad/a.py", SOURCE)
    write("bad/mllint.toml", "selct = []")
    result = mllint("--output-format", "concise", ".")
    assert result.exit_code == 2
    assert result.stdout.count("good/a.py") == 2
    assert "bad/a.py" not in result.stdout
    assert "bad/mllint.toml: unknown key `selct` (did you mean `select`?" in result.stderr


# --- the command line over the file ---------------------------------------------------------------


def test_patterns_of_the_command_line_are_relative_to_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    write("mllint.toml", '[lint.per-file-ignores]\n"sub/b.py" = ["ML101"]\n')
    write("sub/a.py", SOURCE)
    write("sub/b.py", SOURCE)
    monkeypatch.chdir("sub")
    assert codes(".") == ["ML101", "ML501", "ML501"]
    assert codes("--extend-per-file-ignores", "./a.py:ML5", ".") == ["ML101", "ML501"]
    assert codes("--per-file-ignores", "./a.py:ML5", ".") == ["ML101", "ML101", "ML501"]
    assert codes("--per-file-ignores", "*.py:ML5,ML1", ".") == []
    assert codes("--extend-exclude", "/a.py", ".") == ["ML501"]
    assert codes("--exclude", "/sub/a.py", ".") == ["ML101", "ML501", "ML501"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--per-file-ignores", "a.py"],
        ["--per-file-ignores", "a.py:"],
        ["--per-file-ignores", "a.py:E501"],
        ["--extend-per-file-ignores", "a/[z-a]:ML1"],
        ["--exclude", "a/[z-a]"],
        ["--severity", "ML1"],
        ["--severity", "ML1=bad"],
        ["--severity", "E501=error"],
        ["--min-severity", "bad"],
        ["--unfixable", "E501"],
        ["--extend-ignore", "E501"],
    ],
)
def test_wrong_values_of_options_end_with_2(arguments: list[str]) -> None:
    write("a.py", SOURCE)
    result = mllint(*arguments, "a.py")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert arguments[0] in result.stderr


def test_extend_ignore_adds_to_what_the_file_ignores() -> None:
    write("a.py", SOURCE)
    write("mllint.toml", 'ignore = ["ML101"]')
    assert codes("--extend-ignore", "ML5", "a.py") == []
    assert codes("--ignore", "ML5", "a.py") == ["ML101"]


def test_gitignore_and_exclusion_can_be_switched(folder: Path) -> None:
    Path(".git").mkdir()
    write(".gitignore", "gen.py\n")
    write("gen.py", SOURCE)
    write("build/a.py", SOURCE)
    assert codes(".") == []
    assert codes("--no-respect-gitignore", ".") == ["ML101", "ML501"]
    write("mllint.toml", "respect-gitignore = false\nforce-exclude = true\n")
    assert codes(".") == ["ML101", "ML501"]
    assert codes("--respect-gitignore", ".") == []
    assert codes("build/a.py") == []
    assert codes("--no-force-exclude", "build/a.py") == ["ML101", "ML501"]


# --- severities -----------------------------------------------------------------------------------


def severities(*arguments: str) -> dict[str, str]:
    return {entry["code"]: entry["severity"] for entry in found(*arguments)}


def test_the_most_exact_name_of_a_rule_decides_its_severity() -> None:
    write("a.py", SOURCE)
    assert severities("a.py") == {"ML101": "warning", "ML501": "warning"}
    write("mllint.toml", '[lint.severity]\nALL = "info"\nML1 = "error"\n')
    assert severities("a.py") == {"ML101": "error", "ML501": "info"}
    assert severities("--severity", "nan-comparison=error", "a.py") == {"ML101": "error", "ML501": "error"}
    assert severities("--severity", "ML=error", "a.py") == {"ML101": "error", "ML501": "error"}


def test_what_is_below_the_least_severity_does_not_count() -> None:
    write("a.py", SOURCE)
    write("mllint.toml", '[lint]\nmin-severity = "warning"\n[lint.severity]\nML1 = "info"\n')
    assert codes("a.py") == ["ML501"]
    assert mllint("--min-severity", "error", "a.py").exit_code == 0
    assert codes("--min-severity", "info", "a.py") == ["ML101", "ML501"]
    assert mllint("--fix", "--severity", "ML5=info", "a.py").exit_code == 0
    assert Path("a.py").read_text("utf-8") == SOURCE


def test_what_concerns_the_work_itself_stays_an_error() -> None:
    write("a.py", "import torch\ndef f(:\n")
    assert severities("--severity", "ALL=info", "--min-severity", "error", "a.py") == {"ML001": "error"}


def test_the_library_and_flake8_know_severities_too() -> None:
    settings = Settings(severities=(("ML1", Severity.ERROR),), min_severity=Severity.ERROR)
    (only,) = lint_source(SOURCE, settings=settings).diagnostics
    assert (only.code, only.severity) == ("ML101", Severity.ERROR)
    for wrong in (Settings(severities=(("E501", Severity.INFO),)), Settings(unfixable=("no-such-rule",))):
        (only,) = lint_source(SOURCE, settings=wrong).diagnostics
        assert only.code == "ML000"
        assert only.message.startswith("unknown rule selector `")


# --- fixes ----------------------------------------------------------------------------------------


def applicability(*arguments: str) -> dict[str, str]:
    return {entry["code"]: entry["fix"]["applicability"] for entry in found(*arguments)}


def test_which_fixes_are_applied() -> None:
    write("a.py", SOURCE)
    assert applicability("a.py") == {"ML101": "safe", "ML501": "safe"}
    assert applicability("--unfixable", "ML1", "a.py") == {"ML101": "display", "ML501": "safe"}
    assert applicability("--fixable", "ML1", "a.py") == {"ML101": "safe", "ML501": "display"}
    both = ["--fixable", "ML101", "--unfixable", "ML1", "a.py"]
    assert applicability(*both) == {"ML101": "safe", "ML501": "display"}
    write("mllint.toml", '[lint]\nfixable = ["ML1"]\nunfixable = ["ML5"]\n')
    assert applicability("--extend-fixable", "ML501", "a.py") == {"ML101": "safe", "ML501": "safe"}
    assert mllint("--fix", "a.py").exit_code == 1
    assert Path("a.py").read_text("utf-8") == SOURCE.replace("x.cuda()", "x = x.cuda()")


def test_how_far_fixes_are_trusted() -> None:
    write("a.py", SOURCE)
    write("b.py", UNSAFE)
    version = ["--target-version", "torch=2.0"]
    assert applicability(*version, "b.py") == {"ML429": "unsafe"}
    write("mllint.toml", '[lint]\nextend-safe-fixes = ["ML4"]\nextend-unsafe-fixes = ["nan-comparison", "ML429"]\n')
    assert applicability("a.py") == {"ML101": "safe", "ML501": "unsafe"}
    assert applicability(*version, "b.py") == {"ML429": "unsafe"}
    write("mllint.toml", '[lint]\nextend-safe-fixes = ["ML4"]\n')
    assert applicability(*version, "b.py") == {"ML429": "safe"}
    assert mllint(*version, "--fix", "b.py").exit_code == 0
    assert "weights_only" in Path("b.py").read_text("utf-8")


def test_a_fix_that_is_only_shown_is_never_applied() -> None:
    write("a.py", SOURCE)
    assert mllint("--fix", "--unsafe-fixes", "--unfixable", "ALL", "a.py").exit_code == 1
    assert Path("a.py").read_text("utf-8") == SOURCE
    (first, *_) = lint_source(SOURCE, settings=Settings(unfixable=("ALL",))).diagnostics
    assert first.fix is not None
    assert first.fix.applicability is Applicability.DISPLAY


# --- the schema -----------------------------------------------------------------------------------

SHIPPED = Path(package.__file__).parent / "mllint.schema.json"


@pytest.mark.parametrize(
    "text",
    [
        "",
        'select = ["ML1"]',
        'extend = "../mllint.toml"\nexclude = ["a"]\nrespect-gitignore = false',
        '[lint.severity]\nML1 = "error"\n[lint.per-file-ignores]\n"a.py" = ["ML1"]',
        '[lint]\nunfixable = ["ML1"]\nmin-severity = "info"',
        '[target-version]\ntorch = "2.6"',
    ],
)
def test_the_schema_takes_what_mllint_takes(text: str) -> None:
    jsonschema.Draft202012Validator(json.loads(SHIPPED.read_text("utf-8"))).validate(tomllib.loads(text))
    write("extended.toml", "")
    write("c/mllint.toml", text.replace("../mllint.toml", "../extended.toml"))
    resolved("c")


@pytest.mark.parametrize(
    "text",
    [
        "selct = []",
        'select = "ML1"',
        "lint = 3",
        '[lint.severity]\nML1 = "bad"',
        '[lint]\nmin-severity = "bad"',
        "[target-version]\ntorch = 2.6",
        '[target-version]\ntensorflow = "2"',
        "force-exclude = 1",
    ],
)
def test_the_schema_refuses_what_mllint_refuses(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads(SHIPPED.read_text("utf-8"))).validate(tomllib.loads(text))
    write("c/mllint.toml", text)
    with pytest.raises(ConfigurationError):
        resolved("c")


def test_the_schema_is_a_schema_and_every_key_is_described() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    keys = {key.rpartition(".")[2] for key, _ in described_keys()}
    assert keys_of(Table) - {"lint", "target-version"} <= keys


# --- showing --------------------------------------------------------------------------------------


def test_show_files() -> None:
    for path in ("a.py", "b/c.pyi", "b/d.txt", "build/e.py", "bad/f.py"):
        write(path, SOURCE)
    result = mllint("--show-files", ".")
    assert (result.exit_code, result.stdout.split(), result.stderr) == (0, ["a.py", "b/c.pyi", "bad/f.py"], "")
    write("bad/mllint.toml", "selct = []")
    result = mllint("--show-files", ".", "gone.py")
    assert (result.exit_code, result.stdout.split()) == (2, ["a.py", "b/c.pyi"])
    assert "selct" in result.stderr
    assert "gone.py: no such file" in result.stderr


def test_the_settings_that_are_shown_are_those_that_hold(folder: Path) -> None:
    write(
        "mllint.toml",
        'extend-exclude = ["x\\\\y"]\n[lint]\nselect = ["ML1"]\nignore = ["ML102"]\nunfixable = ["ML5"]\n'
        '[lint.severity]\nML1 = "error"\n[lint.per-file-ignores]\n"a \\"b\\"" = ["ML1"]\n'
        '[target-version]\ntorch = "2.1"\n',
    )
    options = ["--extend-select", "ML501", "--min-severity", "warning", "--per-file-ignores", "c.py:ML1"]
    result = mllint("--show-settings", *options, ".")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"# .: {folder / 'mllint.toml'}\n# patterns are relative to {folder}\n")
    write("shown/mllint.toml", result.stdout)
    before = Resolver(
        Overrides(
            extend_select=("ML501",),
            min_severity=Severity.WARNING,
            per_file_ignores=(("c.py", ("ML1",)),),
        )
    ).for_folder(".")
    after = Resolver(file="shown/mllint.toml").for_folder(".")
    assert after.settings.select == (*before.settings.select, *before.settings.extend_select)
    for name in ("ignore", "unfixable", "severities", "min_severity", "per_file_ignores", "torch_version", "fixable"):
        assert getattr(after.settings, name) == getattr(before.settings, name)
    assert after.files.exclude == (*before.files.exclude, *before.files.extend_exclude)


def test_patterns_of_the_command_line_may_be_absolute_paths(folder: Path) -> None:
    text = "import torch\nx = torch.zeros(3)\nx.cuda()\n"
    for name in ("a.py", "b/c.py", "b/d.py"):
        write(name, text)

    def found(*options: str) -> list[str]:
        shown = mllint("--output-format", "concise", "-q", *options, ".").stdout
        return [line.partition(":")[0] for line in shown.splitlines()]

    assert found("--extend-exclude", f"{folder}/b/c.py") == ["a.py", "b/d.py"]
    assert found("--exclude", f"{folder}/b") == ["a.py"]
    assert found("--per-file-ignores", f"{folder}/b/*:ML1") == ["a.py"]


def test_keys_of_pyproject_in_a_file_of_our_own() -> None:
    write("a.py", "")
    write("mllint.toml", '[tool.mllint]\nselect = ["ML1"]')
    result = mllint(".")
    assert result.exit_code == 2
    assert "unknown key `tool` (in this file the keys stand without `tool.mllint`)" in result.stderr


def test_the_versions_that_the_project_asks_for_are_shown() -> None:
    write("setup.py", "")
    write("requirements.txt", "torch>=2.4\n")
    write("a.py", "")
    for path in (".", "a.py"):
        assert 'torch = "2.4"  # what the project asks for' in mllint("--show-settings", path).stdout
    assert 'torch = "2.1"\n' in mllint("--show-settings", "--target-version", "torch=2.1", ".").stdout
    # It is no configuration of mllint, but says what the code is written for, as its other files do.
    assert 'torch = "2.4"  # what the project asks for' in mllint("--show-settings", "--isolated", ".").stdout


def test_settings_of_several_paths_and_of_none() -> None:
    write("a/mllint.toml", 'select = ["ML1"]')
    write("b/mllint.toml", "selct = []")
    result = mllint("--show-settings", "a", "b", "c.py")
    assert result.exit_code == 2
    assert result.stdout.count("[lint]") == 2
    assert 'select = ["ML1"]' in result.stdout
    assert "# c.py: defaults and options" in result.stdout
    assert "selct" in result.stderr
