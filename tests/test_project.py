"""What a project keeps of its files from one check to the next."""

from pathlib import Path

from mllint.semantic.model import Model
from mllint.semantic.project import Project
from mllint.semantic.values import Number, Tensor
from mllint.syntax.bare import bare_tree
from mllint.syntax.source import Source


def _model(path: Path, text: str, project: Project) -> Model:
    source = Source.from_bytes(text.encode(), str(path))
    return Model(bare_tree(text), source, project)


def test_what_others_know_of_a_file_goes_with_its_text(tmp_path: Path) -> None:
    first, second = "import torch\n\n\ndef made():\n    return torch.zeros(3)\n", "def made():\n    return 3\n"
    (tmp_path / "parts.py").write_text(first)
    (tmp_path / "whole.py").write_text("import torch\nfrom parts import made\n\nx = made()\n")
    project = Project(tmp_path)
    project.keep(_model(tmp_path / "parts.py", first, project))
    whole = project.model(tmp_path / "whole.py")
    assert whole is not None
    call = whole.calls_by_word["made"][0]
    assert isinstance(whole.value(call), Tensor)
    project.keep(_model(tmp_path / "parts.py", second, project))
    assert isinstance(whole.value(call), Number)
