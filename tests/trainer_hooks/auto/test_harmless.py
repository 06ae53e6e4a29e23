"""Observation is the default of `ett run`, so every command that is no training must not notice it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import ett_core
import ett_trainer_hooks
from ett_trainer_hooks.auto import SITE

BASE = sys._base_executable
"""The Python that the virtual environment is made of; it has neither ettwatch nor torch."""


@pytest.fixture
def beside(tmp_path):
    """A directory in which ettwatch and what it needs lie side by side, as an installation puts them."""
    directory = tmp_path / "installed"
    directory.mkdir()
    for package in (ett_core, ett_trainer_hooks, msgspec):
        (directory / package.__name__).symlink_to(Path(package.__file__).parent)
    return directory


@pytest.fixture
def plain(tmp_path):
    """Runs a Python that has no ettwatch, with `site` in front of a torch that does nothing."""
    (tmp_path / "fake/torch").mkdir(parents=True)
    (tmp_path / "fake/torch/__init__.py").write_text("")

    def run(site, program, *options):
        path = os.pathsep.join([str(site), str(tmp_path / "fake")])
        job = {"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(tmp_path / "journal")}
        return subprocess.run(
            [BASE, *options, "-c", program],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **job},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_a_shell_script_sees_its_path_behind_ours_and_nothing_else(ett_run, environ, tmp_path):
    """What was on PYTHONPATH stays, in its order; output and status pass."""
    program = tmp_path / "script.sh"
    program.write_text('echo "$PYTHONPATH"; exit 4')
    path = os.pathsep.join(filter(None, ["/one", "/two", environ.get("PYTHONPATH")]))
    ran = ett_run("bash", str(program), options=("--quiet",), PYTHONPATH=path)
    assert (ran.status, ran.out, ran.err) == (4, f"{SITE}:{path}\n", "")
    off = ett_run("bash", str(program), options=("--quiet", "--no-auto"), PYTHONPATH=path)
    assert off.out == f"{path}\n"
    by_variable = ett_run("bash", str(program), options=("--quiet",), PYTHONPATH=path, ETT_AUTO="0")
    assert by_variable.out == f"{path}\n"


def test_a_python_that_trains_nothing_loads_one_module_more(plain):
    """That is the `sitecustomize` itself; it leaves no directory on the path."""
    program = "import sys; print(sorted(sys.modules)); print(sys.path[1:])"
    with_ours, without = plain(SITE, program), plain("/nowhere", program)
    names, path = with_ours.stdout.splitlines()
    assert {*ast.literal_eval(names)} - {*ast.literal_eval(without.stdout.splitlines()[0])} <= {
        "sitecustomize"
    }
    assert path == without.stdout.splitlines()[1].replace("'/nowhere', ", "")
    assert with_ours.stderr == ""


def test_a_module_that_is_looked_for_while_torch_comes_is_found(plain, beside, tmp_path):
    """A thread that imports beside the one that imports torch passes over no finder, observed or not."""
    (beside / "msgspec").unlink()
    (tmp_path / "fake/other.py").write_text("VALUE = 3")
    program = """
import sys
class Busy:
    def find_spec(self, name, path, target=None):
        if name == "other":
            import torch
names = [getattr(finder, "__name__", "") for finder in sys.meta_path]
sys.meta_path.insert(names.index("PathFinder"), Busy())
import other
print(other.VALUE, "torch" in sys.modules)
"""
    ran = plain(beside / "ett_trainer_hooks/auto/site", program)
    assert ran.stdout == "3 True\n"


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_is_told_to_stand_alone_does(plain, option):
    """It imports no `sitecustomize` of ours."""
    ran = plain(SITE, "import sys; print('sitecustomize' in sys.modules)", option)
    here = subprocess.run(
        [BASE, option, "-c", "import sys; print('sitecustomize' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == (here.stdout, "")


def test_a_python_without_ettwatch_uses_the_packages_of_the_launcher(plain, beside):
    """Training in another environment than the one of `ett run` is observed where the packages fit."""
    site = beside / "ett_trainer_hooks/auto/site"
    program = "import sys, torch; print(sys.modules['ett_trainer_hooks'].__file__, 'torch' in sys.modules)"
    ran = plain(site, program)
    assert (ran.stdout, ran.stderr) == (f"{beside}/ett_trainer_hooks/__init__.py True\n", "")


def test_where_they_do_not_fit_the_program_goes_on_and_one_line_says_so(plain, beside):
    """Children say nothing more, and nothing of ours stays behind."""
    (beside / "msgspec").unlink()
    site = beside / "ett_trainer_hooks/auto/site"
    again = "subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    left = "[name for name in sys.modules if name.startswith('ett')]"
    ran = plain(site, f"import subprocess, sys, torch; {again}; print({left}, sys.meta_path[-1].__name__)")
    assert ran.stdout == "[] PathFinder\n"
    (line,) = ran.stderr.splitlines()
    assert line.startswith("ettwatch: not observed (ModuleNotFoundError: No module named 'msgspec')")
    assert line.endswith(f"; install ettwatch for {BASE}")


def test_the_text_at_the_start_of_every_python_can_be_read_by_old_ones():
    """No syntax younger than Python 3.5: a job may start such programs, and they must not complain."""
    text = (SITE / "sitecustomize.py").read_text()
    compile(text, "sitecustomize.py", "exec", dont_inherit=True)
    ast.parse(text, feature_version=(3, 5))
    assert "annotations" not in text
    assert 'f"' not in text


def test_environments_tests_and_pools_of_processes_work_as_ever(ett_run, script, tmp_path):
    """A virtual environment is made, pytest runs, spawned processes compute; nobody becomes a rank."""
    (tmp_path / "test_one.py").write_text("def test_one():\n    assert True\n")
    program = f"""
import multiprocessing, subprocess, sys
if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", {str(tmp_path / "made")!r}], check=True)
    made = {str(tmp_path / "made/bin/python")!r}
    subprocess.run([made, "-c", "import sys; assert sys.prefix != sys.base_prefix"], check=True)
    tests = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", {str(tmp_path / "test_one.py")!r}]
    subprocess.run(tests, check=True, stdout=subprocess.DEVNULL)
    for way in ("spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            print(pool.map(abs, [-1, -2]))
"""
    ran = ett_run(sys.executable, script(program), options=("--quiet",))
    assert (ran.status, ran.out, ran.err) == (0, "[1, 2]\n[1, 2]\n", "")
    assert ran.ranks == {-1}
