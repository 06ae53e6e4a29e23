"""Every folder of `examples/` runs under `ett run` as a person would run it.

An example is `examples/<name>/train.py`. It is started as `python train.py` in a copy of its
folder; one that needs other words says so in the first line of train.py that begins with
`# run: `, such as `# run: torchrun --nproc-per-node 2 train.py`. It needs no network, ends in
seconds and writes, if anything, below its working directory.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ett_core.accounting import JobFold
from ett_core.events import decode

EXAMPLES = Path(__file__).parents[2] / "examples"
FRAMEWORKS = {"accelerate", "lightning", "torchrec", "torchtitan", "transformers"}
SENTENCE = re.compile(r"^ett run: Largest loss: [a-z_.]+ \(.+\) took .+ %: .+\.$", re.MULTILINE)
LIMIT_S = 600.0


def command_of(program: str) -> list[str]:
    """The words that start an example.

    >>> command_of('# run: torchrun --nproc-per-node 2 train.py')
    ['torchrun', '--nproc-per-node', '2', 'train.py']
    """
    lines = (line.removeprefix("# run: ") for line in program.splitlines() if line.startswith("# run: "))
    return shlex.split(next(lines, "python train.py"))


def imported(program: str) -> set[str]:
    """The packages that a program imports, wherever it does."""
    nodes = list(ast.walk(ast.parse(program)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}


def example(path: Path):
    """A parameter of the test, with the frameworks that the example needs as services."""
    services = sorted({"torch", *(imported(path.read_text()) & FRAMEWORKS)} - {"torchrec"})
    return pytest.param(path, id=path.parent.name, marks=[pytest.mark.service(name) for name in services])


@pytest.mark.parametrize("program", [example(path) for path in sorted(EXAMPLES.glob("*/train.py"))])
def test_an_example_runs_and_its_time_is_accounted_for(program, tmp_path):
    """It succeeds, `ett run` says its last sentence, the parts add up, and training is among them."""
    here = shutil.copytree(program.parent, tmp_path / "example")
    surroundings = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), surroundings["PATH"]])
    ett_run = ["ett", "run", "--job-id", program.parent.name, "--journal-dir", str(tmp_path / "journal")]
    done = subprocess.run(
        [*ett_run, "--", *command_of(program.read_text())],
        check=False,
        cwd=here,
        env={"OMP_NUM_THREADS": "1", **surroundings, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert SENTENCE.search(done.stderr), done.stderr
    fold = JobFold(program.parent.name)
    lines = [
        line for each in (tmp_path / "journal").glob("*.jsonl") for line in each.read_bytes().splitlines()
    ]
    fold.add([decode(line) for line in lines])
    account = fold.account(0.0)
    assert account.state == "succeeded"
    assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
    assert account.components["training"] > 0
    assert "unobserved" not in account.components


def test_every_example_has_a_program_of_its_own():
    """No folder of programs is passed over for want of a train.py; deploy/ holds no programs."""
    folders = sorted(path for path in EXAMPLES.iterdir() if any(path.rglob("*.py")))
    assert folders
    assert [folder for folder in folders if not (folder / "train.py").is_file()] == []


def test_an_example_says_how_it_wants_to_be_run():
    """The first such line counts; without one it is Python."""
    assert command_of('# run: python train.py --steps "3"\n# run: other\n') == [
        "python",
        "train.py",
        "--steps",
        "3",
    ]
    assert command_of('"""Text."""\nimport torch\n') == ["python", "train.py"]
    assert imported("import a.b\ndef f():\n    from c.d import e\n") == {"a", "c"}
