"""Configuration: tables to settings, which file decides, and what is said of a wrong one."""

import pickle
from pathlib import Path

import pytest

from mllint.configuration.files import Resolver, configuration
from mllint.configuration.requirements import Requirements, lower_bound, lower_bounds, upper_bound
from mllint.configuration.settings import (
    DEFAULT_EXCLUDE,
    Configuration,
    ConfigurationError,
    Overrides,
    Settings,
    parse_version,
)
from mllint.configuration.table import parse_inline


def from_table(text: str, **overrides: object) -> Configuration:
    """The configuration that a table in a ``pyproject.toml`` means."""
    table = parse_inline(text)
    return configuration(table, "/p/pyproject.toml", "/p", Overrides(**overrides))  # type: ignore[arg-type]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_full_table() -> None:
    found = from_table(
        """
        exclude = ["legacy"]
        extend-exclude = ["third_party/*.py"]
        force-exclude = true
        respect-gitignore = false
        target-version = { torch = "2.4", paddle = "2.6.2" }
        [lint]
        select = ["ML1", "nan-comparison"]
        ignore = ["ML102"]
        extend-select = ["ML203"]
        per-file-ignores = { "tests/*" = ["ML101"], "!src/*" = ["ML5"] }
        """
    )
    assert found.settings == Settings(
        select=("ML1", "nan-comparison"),
        ignore=("ML102",),
        extend_select=("ML203",),
        per_file_ignores=(("tests/*", ("ML101",)), ("!src/*", ("ML5",))),
        pattern_root="/p",
        torch_version="2.4",
        paddle_version="2.6.2",
    )
    assert found.files.exclude == ("legacy",)
    assert found.files.extend_exclude == ("third_party/*.py",)
    assert found.files.force_exclude
    assert not found.files.respect_gitignore


def test_an_empty_table_is_the_defaults() -> None:
    found = from_table("")
    assert found.settings == Settings(pattern_root="/p")
    assert found.settings.select == ("ML",)
    assert found.files.exclude == DEFAULT_EXCLUDE
    assert found.files.respect_gitignore
    assert not found.files.force_exclude


def test_keys_of_lint_may_stand_in_the_outer_table() -> None:
    assert from_table('select = ["ML1"]') == from_table('lint.select = ["ML1"]')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "selct = []",
            "unknown key `tool.mllint.selct` (did you mean `select`? allowed: exclude, extend, extend-exclude, ",
        ),
        (
            "lint.ignores = []",
            "unknown key `tool.mllint.lint.ignores` (did you mean `ignore`? allowed: extend-fixable, extend-ignore, ",
        ),
        (
            'severity.ML1 = "eror"',
            "`tool.mllint.severity`: `eror` is no severity (did you mean `error`? allowed: info, warning, error)",
        ),
        (
            'lint.min-severity = "bad"',
            "`tool.mllint.lint.min-severity`: `bad` is no severity (allowed: info, warning, error)",
        ),
        ('lint.severity.nan = "error"', "`tool.mllint.lint.severity`: `nan` names no rule"),
        ('lint.unfixable = ["X"]', "`tool.mllint.lint.unfixable`: `X` names no rule"),
        (
            'target-version.tensorflow = "2"',
            "unknown key `tool.mllint.target-version.tensorflow` (allowed: paddle, torch)",
        ),
        (
            "rules = {}",
            "unknown key `tool.mllint.rules` (it belongs to an older, unrelated tool that used the same table)",
        ),
        ('lint.select = "ML1"', "`tool.mllint.lint.select`: expected `array`, got `str`"),
        ("lint = 3", "`tool.mllint.lint`: expected `table`, got `int`"),
        ("force-exclude = 1", "`tool.mllint.force-exclude`: expected `bool`, got `int`"),
        (
            "target-version.torch = 2.6",
            "`tool.mllint.target-version.torch`: expected `str`, got `float`",
        ),
        (
            'target-version.torch = "new"',
            "`tool.mllint.target-version.torch`: `new` is not a version such as `2.6`",
        ),
        (
            'select = ["ML1"]\nlint.select = ["ML2"]',
            "`tool.mllint.select` and `tool.mllint.lint.select` are both given",
        ),
        ('ignore = ["ML777"]', "`tool.mllint.ignore`: `ML777` names no rule"),
        ('ignore = [""]', "`tool.mllint.ignore`: `` names no rule"),
        (
            'ignore = ["nan-comparision"]',
            "`tool.mllint.ignore`: `nan-comparision` names no rule; did you mean `nan-comparison`?",
        ),
        ('per-file-ignores."a.py" = ["X1"]', "`tool.mllint.per-file-ignores`: `X1` names no rule"),
        ('exclude = ["a/[z-a]"]', "`tool.mllint.exclude`: `a/[z-a]` is not a pattern"),
        (
            'per-file-ignores."!a/[z-a]" = ["ML1"]',
            "`tool.mllint.per-file-ignores`: `a/[z-a]` is not a pattern",
        ),
    ],
)
def test_a_wrong_table_is_an_error_that_says_what_is_wrong(text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_table(text)
    assert str(caught.value).startswith(f"/p/pyproject.toml: {expected}")


def test_an_inline_setting_is_laid_over_the_table() -> None:
    inline = (parse_inline('lint.select = ["ML2"]'), parse_inline('target-version.paddle="3.0"'))
    found = from_table('select = ["ML1"]\nignore = ["ML101"]\ntarget-version.torch = "2.1"', tables=inline)
    assert found.settings.select == ("ML2",)
    assert found.settings.ignore == ("ML101",)
    assert (found.settings.torch_version, found.settings.paddle_version) == ("2.1", "3.0")


def test_a_wrong_inline_setting_names_the_option() -> None:
    with pytest.raises(ConfigurationError, match=r"^--config: unknown key `selec` \(did you mean"):
        from_table("", tables=(parse_inline("selec = []"),))
    with pytest.raises(ConfigurationError, match=r"^--config: `select = ` is not valid TOML"):
        parse_inline("select = ")


def test_select_on_the_command_line_starts_afresh() -> None:
    table = 'select = ["ML1"]\nignore = ["ML101"]\nextend-select = ["ML2"]'
    settings = from_table(table, select=("ML101",)).settings
    assert (settings.select, settings.ignore, settings.extend_select) == (("ML101",), (), ())


def test_ignore_on_the_command_line_replaces_that_of_the_file() -> None:
    settings = from_table('ignore = ["ML101"]', ignore=("ML2",)).settings
    assert settings.ignore == ("ML2",)


def test_extend_select_on_the_command_line_wins_over_ignore_of_the_file() -> None:
    settings = from_table('ignore = ["ML101", "ML2"]', extend_select=("ML101",)).settings
    assert (settings.ignore, settings.extend_select) == (("ML2",), ("ML101",))


def test_versions_on_the_command_line_win() -> None:
    settings = from_table('target-version.torch = "2.1"', torch_version="2.6").settings
    assert settings.torch_version == "2.6"


def test_the_nearest_file_decides_and_nothing_is_merged(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.mllint]\nselect = ["ML1"]\nignore = ["ML101"]')
    write(tmp_path / "a" / "pyproject.toml", '[tool.mllint]\nselect = ["ML2"]')
    write(tmp_path / "a" / "b" / "pyproject.toml", '[project]\nname = "other"')
    resolver = Resolver()
    assert resolver.for_folder(str(tmp_path)).settings.select == ("ML1",)
    inner = resolver.for_folder(str(tmp_path / "a" / "b"))
    assert (inner.settings.select, inner.settings.ignore) == (("ML2",), ())
    assert inner.source == str(tmp_path / "a" / "pyproject.toml")
    assert inner.root == str(tmp_path / "a")
    assert resolver.for_folder(str(tmp_path / "a")) is inner


def test_files_of_their_own_win_over_pyproject(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.mllint]\nselect = ["ML1"]')
    write(tmp_path / "mllint.toml", 'select = ["ML2"]')
    assert Resolver().for_folder(str(tmp_path)).settings.select == ("ML2",)
    write(tmp_path / ".mllint.toml", 'lint.select = ["ML4"]')
    assert Resolver().for_folder(str(tmp_path)).settings.select == ("ML4",)


def test_a_given_file_holds_for_all_and_its_patterns_for_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a" / "pyproject.toml", '[tool.mllint]\nselect = ["ML2"]')
    given = write(tmp_path / "conf" / "ci.toml", 'select = ["ML4"]')
    monkeypatch.chdir(tmp_path)
    found = Resolver(file=str(given)).for_folder(str(tmp_path / "a"))
    assert found.settings.select == ("ML4",)
    assert found.root == str(tmp_path)


def test_isolated_reads_nothing(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.mllint\n")
    assert Resolver(isolated=True).for_folder(str(tmp_path)).settings.select == ("ML",)


def test_a_given_file_must_be_usable(tmp_path: Path) -> None:
    other = write(tmp_path / "pyproject.toml", "[project]\n")
    with pytest.raises(ConfigurationError, match=r"has no `\[tool.mllint\]` table"):
        Resolver(file=str(other))
    with pytest.raises(ConfigurationError, match="cannot be read: no such file"):
        Resolver(file=str(tmp_path / "missing.toml"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[tool.mllint\n", "is not valid TOML: Expected ']'"),
        (b"name = '\xff'\n", "is not valid TOML"),
        (b"[tool]\nmllint = 1\n", "`tool.mllint` must be a table"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content)
    resolver = Resolver()
    for _ in range(2):  # the second time it is remembered
        with pytest.raises(ConfigurationError) as caught:
            resolver.for_folder(str(tmp_path / "sub"))
        assert str(caught.value).startswith(f"{path}: {expected}")


def test_settings_are_values() -> None:
    settings = Settings(select=("ML1",), per_file_ignores=(("a", ("ML1",)),), torch_version="2.6")
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert len({settings, Settings()}) == 2
    with pytest.raises(AttributeError):
        settings.select = ()  # type: ignore[misc]


def test_settings_that_can_never_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="`two` is not a version"):
        Settings(torch_version="two")
    with pytest.raises(ValueError, match="is not a pattern"):
        Settings(per_file_ignores=(("a/[z-a]", ("ML1",)),))


@pytest.mark.parametrize(
    ("text", "version"), [("2", (2, 0)), ("2.6", (2, 6)), ("2.10.1", (2, 10)), ("2.6.0rc1", (2, 6))]
)
def test_versions(text: str, version: tuple[int, int]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "v2", "2.x", ">=2.6", "2 6"])
def test_no_versions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        parse_version(text)


@pytest.mark.parametrize(
    ("specifier", "bound"),
    [
        (">=2.1,<3", (2, 1)),
        ("<3, >=2.1", (2, 1)),
        ("~=2.1.0", (2, 1)),
        ("==2.1.*", (2, 1)),
        ("==1.13.1+cu117", (1, 13)),
        ("===2.0", (2, 0)),
        ("> 1.9", (1, 9)),
        ("^2.1", (2, 1)),
        (">=2", (2, 0)),
        (">=1.8,>=2.0,!=2.1", (2, 0)),
        ("<3", None),
        ("!=2.0", None),
        ("", None),
        ("@ https://example.org/torch-2.1.whl", None),
    ],
)
def test_the_lower_bound_of_a_specifier(specifier: str, bound: tuple[int, int] | None) -> None:
    assert lower_bound(specifier) == bound


@pytest.mark.parametrize(
    ("specifier", "bound"),
    [
        (">=2.1,<3", (3, 0)),
        ("<2.6, >=2.1", (2, 6)),
        ("<2.6.1", (2, 7)),
        ("<=2.5", (2, 6)),
        ("<=2.5.1", (2, 6)),
        ("~=2.1.0", (2, 2)),
        ("~=2.1", (3, 0)),
        ("==2.1.*", (2, 2)),
        ("==2.1", (2, 2)),
        ("==2", (3, 0)),
        ("==1.13.1+cu117", (1, 14)),
        ("^2.1", (3, 0)),
        ("^0.4", (0, 5)),
        ("~2.1", (2, 2)),
        ("<3,<2.6,!=2.1", (2, 6)),
        (">=2", None),
        ("> 1.9", None),
        ("!=2.0", None),
        ("", None),
        ("@ https://example.org/torch-2.1.whl", None),
    ],
)
def test_the_upper_bound_of_a_specifier(specifier: str, bound: tuple[int, int] | None) -> None:
    assert upper_bound(specifier) == bound


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "pyproject.toml",
            '[project]\ndependencies = ["torch>=2.1; python_version>\'3\'", "torchvision>=9"]',
            {"torch": "2.1"},
        ),
        ("pyproject.toml", '[project]\ndependencies = ["torch"]', {}),
        ("pyproject.toml", '[project]\ndependencies = ["Torch [opt] (>=2.3)"]', {"torch": "2.3"}),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = "2.2"\npaddlepaddle-gpu = {version = "^2.5"}',
            {"torch": "2.2", "paddle": "2.5"},
        ),
        ("pyproject.toml", "project = 3", {}),
        ("pyproject.toml", "[project", {}),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    numpy\n    torch >= 1.12\n",
            {"torch": "1.12"},
        ),
        ("setup.cfg", "install_requires = torch>=1\n", {}),
        ("setup.py", "setup(name='x', install_requires=['tqdm', 'torch>=1.13'])\n", {"torch": "1.13"}),
        (
            "setup.py",
            "needed = ['paddlepaddle>=2.5', number]\nsetuptools.setup(install_requires=needed)\n",
            {"paddle": "2.5"},
        ),
        ("setup.py", "setup(install_requires=open('requirements.txt').read())\n", {}),
        ("setup.py", "setup(install_requires=['torch>=2'\n", {}),
        (
            "requirements.txt",
            "# torch>=9\n-r base.txt\n--find-links x\npaddlepaddle==2.6.2  # cpu\ntorch>=2.0\n",
            {"torch": "2.0", "paddle": "2.6"},
        ),
        (
            "requirements.txt",
            "torch==2.4 ; sys_platform == 'linux'\ntorch==2.2 ; sys_platform == 'darwin'\n",
            {"torch": "2.2"},
        ),
        ("requirements.txt", "torch==2.4 ; x\ntorch ; y\n", {}),
        ("requirement.txt", "torch==1.6.0\n", {"torch": "1.6"}),
        ("requirements-gpu.txt", "torch==1.8.1+cu111\n", {"torch": "1.8"}),
        ("my_requirements.txt", "torch==1.7\n", {"torch": "1.7"}),
        ("notes.txt", "torch==1.7\n", {}),
        ("environment.yml", "channels:\n  - pytorch\ndependencies:\n  - pytorch=1.10.2\n", {"torch": "1.10"}),
        (
            "environment.yml",
            "dependencies:\n- pytorch::pytorch=2.5=py3.9_cuda11\nname: x\n- pytorch\n",
            {"torch": "2.5"},
        ),
        ("environment.yaml", "dependencies:\n  - pytorch >= 1.13  # or newer\n", {"torch": "1.13"}),
        ("environment.yml", "dependencies:\n  - pytorch 1.9 py38\n", {"torch": "1.9"}),
        ("environment-ubuntu.yml", "dependencies:\n  - pytorch=1.1.0\n", {"torch": "1.1"}),
        ("conda_env.yaml", "dependencies:\n  - pytorch=1.4\n", {"torch": "1.4"}),
        ("environments.yml", "dependencies:\n  - pytorch=1.4\n", {}),
        ("environment.yml", "dependencies:\n  - pytorch\n  - torchvision=0.9\n", {}),
        (
            "environment.yml",
            "dependencies:\n  - pip\n  - pip:\n    - torch==2.1.2+cu118\n    - 'paddlepaddle-gpu>=2.6'\n",
            {"torch": "2.1", "paddle": "2.6"},
        ),
        ("environment.yml", "dependencies: {torch: [\n", {}),
        (
            "install.sh",
            "conda create -y\nconda install -y pytorch==1.1.0 \\\n  cudatoolkit=10 -c pytorch\n",
            {"torch": "1.1"},
        ),
        ("setup_env.sh", "pip3 install 'torch>=2.1' && python -c 'import torch==1.0'\n", {"torch": "2.1"}),
        ("setup-gpu.sh", "# pip install torch==1.0\npip install paddlepaddle-gpu==2.4.2.post117\n", {"paddle": "2.4"}),
        ("conda.sh", "conda install pytorch=1.7 torchvision\n", {"torch": "1.7"}),
        ("train.sh", "pip install torch==1.7\n", {}),
        ("README.md", "# Net\n```\ntorch==1.10.1\n```\n", {"torch": "1.10"}),
        ("README.md", "- Python 3.7, `PyTorch` >= 1.7\n- PaddlePaddle-gpu = 2.1\n", {"torch": "1.7", "paddle": "2.1"}),
        ("README.rst", "pip install torch==2.1 torchvision\nor torch == 1.8\n", {"torch": "1.8"}),
        ("README.md", "With PyTorch 2.0 it is faster. `pip install torch`, `my-torch==1.0`? torch = nothing.\n", {}),
        ("README0.md", "## Get started\npaddlepaddle-gpu==2.1.0 [Warning: none newer]\n", {"paddle": "2.1"}),
        ("README_en.md", "paddle >= 2.2, and PaddlePaddle 2.0 for the older branch\n", {"paddle": "2.2"}),
        ("readme.zh-CN.md", "- 框架：PaddlePaddle 2.3.2；\n- torch>=1.8\n", {"torch": "1.8", "paddle": "2.3"}),
        ("README_CN.md", "| PaddlePaddle | 2.1.2 |\n| `paddlepaddle-gpu` 2.4 |\n", {"paddle": "2.1"}),
        ("README.md", "Paddle 2 is here. paddle-lite 2.10, PaddleOCR 2.6, paddle3d, Paddle/2.1, pypaddle 2.1\n", {}),
        ("readmes.md", "torch==1.10.1\n", {}),
    ],
)
def test_versions_that_a_project_asks_for(tmp_path: Path, name: str, text: str, expected: dict[str, str]) -> None:
    write(tmp_path / name, text)
    assert lower_bounds(str(tmp_path)) == expected


def test_the_first_file_that_names_the_framework_decides(tmp_path: Path) -> None:
    write(tmp_path / "requirements.txt", "torch==2.9\npaddlepaddle==3.0\n")
    write(tmp_path / "pyproject.toml", '[project]\ndependencies = ["torch>=2.1"]')
    assert lower_bounds(str(tmp_path)) == {"torch": "2.1", "paddle": "3.0"}


def test_other_lists_of_requirements_decide_where_the_usual_one_names_none(tmp_path: Path) -> None:
    write(tmp_path / "requirements-cpu.txt", "torch==1.9\n")
    write(tmp_path / "requirements-gpu.txt", "torch==1.8\n")
    assert lower_bounds(str(tmp_path)) == {"torch": "1.8"}
    write(tmp_path / "requirements.txt", "torch==2.1\n")
    assert lower_bounds(str(tmp_path)) == {"torch": "2.1"}


def test_what_stands_nearest_to_a_file_decides(tmp_path: Path) -> None:
    write(tmp_path / "requirements.txt", "torch==2.9\npaddlepaddle==3.0\n")
    write(tmp_path / "old" / "requirements.txt", "torch==1.4\nnumpy\n")
    write(tmp_path / "any" / "requirements.txt", "torch\n")
    expected = {"train.py": "2.9", "old/train.py": "1.4", "old/models/net.py": "1.4", "new/train.py": "2.9"}
    requirements, root = Requirements(), str(tmp_path.resolve())
    for name, version in expected.items():
        assert requirements.of(str(tmp_path / name), root) == {"torch": version, "paddle": "3.0"}
    assert requirements.of(str(tmp_path / "any" / "train.py"), root) == {"paddle": "3.0"}
    assert requirements.of(str(tmp_path / "old" / "train.py"), str(tmp_path / "new")) == {}


def test_what_a_project_stays_below(tmp_path: Path) -> None:
    write(tmp_path / "requirements.txt", "torch>=1.13,<2.6\npaddlepaddle>=2.6\n")
    write(tmp_path / "old" / "requirements-cpu.txt", "torch==1.9\n")
    write(tmp_path / "old" / "requirements-gpu.txt", "torch==1.10\npaddlepaddle~=2.5.1\n")
    write(tmp_path / "any" / "requirements.txt", "torch==2.1; python_version<'3.12'\ntorch; python_version>='3.12'\n")
    requirements, root = Requirements(), str(tmp_path.resolve())
    assert requirements.below(str(tmp_path / "train.py"), root) == {"torch": "2.6"}
    assert requirements.below(str(tmp_path / "old" / "train.py"), root) == {"torch": "1.11", "paddle": "2.6"}
    assert requirements.below(str(tmp_path / "any" / "train.py"), root) == {}


def test_a_readme_decides_only_where_no_list_does(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "torch==1.10.1\n")
    write(tmp_path / "old" / "README.md", "torch==1.4\n")
    requirements, root = Requirements(), str(tmp_path.resolve())
    assert requirements.of(str(tmp_path / "old" / "train.py"), root) == {"torch": "1.4"}
    assert requirements.of(str(tmp_path / "new" / "train.py"), root) == {"torch": "1.10"}
    write(tmp_path / "requirements.txt", "torch>=2.1\n")
    assert Requirements().of(str(tmp_path / "old" / "train.py"), root) == {"torch": "2.1"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_requirements_that_a_windows_shell_has_written(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "requirements.txt").write_bytes("torch==1.10.0\r\n".encode(encoding))
    assert lower_bounds(str(tmp_path)) == {"torch": "1.10"}


def test_no_files_no_versions(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").mkdir()
    assert lower_bounds(str(tmp_path)) == {}
