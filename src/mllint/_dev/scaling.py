"""How time and memory grow with the size of a file and with the number of files, over source made for it.

The ratios among these figures are what ``bench --check`` compares with those that were written down: seconds differ
from machine to machine, ratios hardly.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

FILE_ROWS = (1_000, 10_000, 100_000)
FOLDER_FILES = (100, 1_000, 10_000)

_HEAD = "import torch\nfrom torch import nn\n"
_BLOCK = '''

class Net{n}(nn.Module):
    def __init__(self, width={n}):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.second(x)


def train{n}(loader, epochs, device):
    """Train the network once."""
    model = Net{n}().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total = 0.0
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            total += {added}
    return model, total
'''
_ROWS = _BLOCK.count("\n")
_IMPORTER = """\
import torch
from .part{before} import Net{before}


@torch.no_grad()
def evaluate(loader):
    model = Net{before}()
    return [torch.argmax(model(x), 1).item() for x in loader]
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the processor, peak memory of the process in MiB, and what was found."""

    seconds: float
    memory: float = 0.0
    findings: int = 0


def source(rows: int, *, mistakes: bool) -> str:
    """A file of about so many rows: networks and loops that train them, each with a mistake or none."""
    added = "loss" if mistakes else "loss.item()"
    return _HEAD + "".join(_BLOCK.format(n=n, added=added) for n in range(max(1, rows // _ROWS)))


def make_folder(root: Path, files: int) -> None:
    """A project of so many files, in packages of twenty of which each file imports the one before."""
    (root / "setup.py").write_text("", encoding="utf-8")
    for number in range(files):
        package, part = root / f"package{number // 20}", number % 20
        if part == 0:
            package.mkdir()
            (package / "__init__.py").write_text("", encoding="utf-8")
        text = _HEAD + _BLOCK.format(n=part, added="loss" if number % 50 == 0 else "loss.item()")
        text += _IMPORTER.format(before=part - 1) if part else ""
        (package / f"part{part}.py").write_text(text, encoding="utf-8")


def of_file(rows: int, *, mistakes: bool) -> Measured:
    """What one file costs, in a process of its own."""
    return _alone(_check_source, source(rows, mistakes=mistakes))


def of_libcst(rows: int) -> Measured:
    """What LibCST's parser alone costs for the same file."""
    return _alone(_parse_source, source(rows, mistakes=False))


def of_folder(files: int) -> dict[str, Measured]:
    """What a project costs from the shell: cold, with nothing changed, and with one file changed."""
    with tempfile.TemporaryDirectory() as folder:
        root, store = Path(folder, "project"), Path(folder, "store")
        root.mkdir()
        make_folder(root, files)
        cold, warm = _shell(root, store), _shell(root, store)
        changed = root / "package0" / "part1.py"
        changed.write_text(changed.read_text("utf-8") + "\n\nx = 1\n", encoding="utf-8")
        one = _shell(root, store)
        shutil.rmtree(store)
    return {"cold": cold, "warm": warm, "one file changed": one}


def table(file_rows: Sequence[int] = FILE_ROWS, folder_files: Sequence[int] = FOLDER_FILES) -> Iterator[str]:
    """The two tables of docs/performance.md."""
    yield "| one file of | without findings | µs a row | memory | with findings | µs a row | memory | findings |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for rows in file_rows:
        clean, found = of_file(rows, mistakes=False), of_file(rows, mistakes=True)
        cells = [
            f"{rows:,} rows",
            *_cells(clean, rows),
            *_cells(found, rows),
            f"{found.findings:,}",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield "| project of | cold | ms a file | memory | nothing changed | memory | one file changed | findings |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for files in folder_files:
        found_in = of_folder(files)
        cold, warm, one = found_in["cold"], found_in["warm"], found_in["one file changed"]
        cells = [
            f"{files:,} files",
            f"{cold.seconds:.2f} s",
            f"{cold.seconds / files * 1e3:.1f}",
            f"{cold.memory:.0f} MiB",
            f"{warm.seconds:.2f} s",
            f"{warm.memory:.0f} MiB",
            f"{one.seconds:.2f} s",
            f"{cold.findings:,}",
        ]
        yield f"| {' | '.join(cells)} |"


def ratios() -> dict[str, float]:
    """What is compared with a baseline: each is a cost in terms of another one, so the less the better."""
    small, large = of_file(1_000, mistakes=False), of_file(10_000, mistakes=False)
    small_found, large_found = of_file(1_000, mistakes=True), of_file(10_000, mistakes=True)
    parser, project = of_libcst(10_000), of_folder(200)
    return {
        "a row of 10,000 over one of 1,000, without findings": large.seconds / small.seconds / 10,
        "a row of 10,000 over one of 1,000, with findings": large_found.seconds / small_found.seconds / 10,
        "10,000 rows without findings over LibCST's parser": large.seconds / parser.seconds,
        "10,000 rows with findings over LibCST's parser": large_found.seconds / parser.seconds,
        "memory of 10,000 rows over that of LibCST's parser": large.memory / parser.memory,
        "200 files with nothing changed over all of them": project["warm"].seconds / project["cold"].seconds,
        "200 files with one changed over all of them": project["one file changed"].seconds / project["cold"].seconds,
    }


def check(baseline: Path, tolerance: float) -> int:
    """Print the ratios beside those of a baseline; 1 where one is worse by more than the tolerance.

    Raises:
        OSError, ValueError: the baseline cannot be read.
    """
    known: dict[str, float] = json.loads(baseline.read_text("utf-8"))
    worse = 0
    for title, ratio in ratios().items():
        allowed = known.get(title, 0.0) * (1 + tolerance)
        is_worse = title in known and ratio > allowed
        worse += is_worse
        shown = f"{known[title]:.3f}" if title in known else "new"
        print(f"{'WORSE ' if is_worse else '      '}{ratio:8.3f}  (baseline {shown})  {title}")
    return 1 if worse else 0


def write(baseline: Path) -> None:
    """Write the ratios of this machine down as the baseline."""
    rounded = {title: round(ratio, 3) for title, ratio in ratios().items()}
    baseline.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")


def _cells(measured: Measured, rows: int) -> list[str]:
    return [f"{measured.seconds:.2f} s", f"{measured.seconds / rows * 1e6:.0f}", f"{measured.memory:.0f} MiB"]


def _check_source(text: str) -> Measured:
    from mllint.configuration.settings import Settings
    from mllint.running.pool import load_rules
    from mllint.running.runner import Mode, Runner, Task

    load_rules()
    started = time.process_time()
    task = Task("source.py", Settings(), data=text.encode(), in_project=False)
    (outcome,) = Runner(Mode()).run([task])
    return Measured(time.process_time() - started, _peak(resource.RUSAGE_SELF), len(outcome.result.diagnostics))


def _parse_source(text: str) -> Measured:
    import libcst

    started = time.process_time()
    libcst.parse_module(text)
    return Measured(time.process_time() - started, _peak(resource.RUSAGE_SELF))


def _alone(function: object, text: str) -> Measured:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found: Measured = pool.submit(function, text).result()  # type: ignore[arg-type]
    return found


def _shell(root: Path, store: Path) -> Measured:
    """``mllint`` from the shell in one process; the seconds of loading it included."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_shell_alone, str(root), str(store)).result()


def _shell_alone(root: str, store: str) -> Measured:
    options = ["--isolated", "--quiet", "--exit-zero", "-j1", "--output-format", "concise", "--cache-dir", store]
    command = [sys.executable, "-m", "mllint", "check", *options, root]
    done = subprocess.run(command, capture_output=True, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(used.ru_utime + used.ru_stime, _peak(resource.RUSAGE_CHILDREN), done.stdout.count(b"\n"))


def _peak(whose: int) -> float:
    """MiB; macOS counts bytes, the others KiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(whose).ru_maxrss * unit / 2**20
