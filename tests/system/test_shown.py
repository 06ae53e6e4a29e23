"""What the pages show of a command is what it prints, where all that it needs are files of the tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SHOWN = {
    ("interval", "ett interval --blocking-s 15"): {},
    ("import", "ett import october.txt --timezone"): {"october.txt": "imports/sacct.txt"},
    ("import", "ett import node-a.log"): {"node-a.log": "imports/torchrun_info.log"},
    ("import", "ett import cluster_job_log"): {"cluster_job_log": "imports/philly_bad_rows.json"},
    ("import", "ett import trace_kalos.csv"): {"trace_kalos.csv": "imports/acme_helios_example_rows.csv"},
    ("simulate", "ett simulate --scenario preemption"): {},
    ("advise", "ett advise dynamic /tmp/trace"): {"trace/0.log": "torch_traces/two_dimensions.log"},
    ("advise", "ett advise autotune /tmp/trace"): {"trace/0.log": "torch_choices/packed_linear.log"},
}
"""A page and the beginning of a command on it, to the files that it reads, as they are called there."""
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(page: str, command: str) -> tuple[str, str]:
    """The whole command that begins so, and what the page says that it prints."""
    for block in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text()):
        for line, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if line.startswith(command):
                return line, output
    raise AssertionError(f"docs/{page}.md shows no '{command}'")


def pattern(output: str) -> str:
    r"""What matches an output in which `...` stands for any lines, or for anything in a line.

    >>> bool(re.fullmatch(pattern("a\n...\n... of c\n"), "a\nb\nb\n3 of c\n"))
    True
    """
    lines = (
        r"(?:.*\n)*" if line.strip() == "..." else f"{re.escape(line).replace(re.escape('...'), '.*')}\n"
        for line in output.splitlines()
    )
    return "".join(lines)


@pytest.mark.parametrize(("page", "command"), SHOWN)
def test_what_a_page_shows_of_a_command_is_what_it_prints(page, command, tmp_path):
    """Word for word, but for what is left out."""
    for name, source in SHOWN[page, command].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(DATA / source, tmp_path / name)
    line, output = shown(page, command)
    surroundings = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
    done = subprocess.run(
        ["bash", "-c", line.replace("/tmp/", f"{tmp_path}/")],  # noqa: S108 - as the page has it
        cwd=tmp_path,
        env={**surroundings, "PATH": f"{Path(sys.executable).parent}:{surroundings['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(pattern(output), done.stdout), done.stdout
