"""A test whose service is missing is skipped with the reason, and fails where services are required."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SUITE = """
import pytest

def test_plain():
    pass

@pytest.mark.service("promtool")
def test_with_promtool():
    pass
"""


@pytest.fixture
def suite(tmp_path):
    """A small suite under the same conftest, run on a PATH that holds no service."""

    def run(
        text: str = SUITE, *words: str, before: tuple[str, ...] = (), **environment: str
    ) -> subprocess.CompletedProcess:
        shutil.copy(CONFTEST, tmp_path / "conftest.py")
        (tmp_path / "test_it.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    service(name)\naddopts = -ra\n")
        kept = {name: value for name, value in os.environ.items() if name != "ETT_REQUIRE_SERVICES"}
        plugins = ["-p", "no:cacheprovider", "-p", "xdist.plugin"]
        return subprocess.run(
            [*before, sys.executable, "-m", "pytest", *plugins, *words, str(tmp_path)],
            env=kept | {"PATH": "/nonexistent", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
            cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run


def test_a_missing_service_skips_its_tests_with_the_reason(suite):
    done = suite()
    assert done.returncode == 0
    assert "1 passed, 1 skipped" in done.stdout
    assert "promtool is not on PATH" in done.stdout


def test_a_missing_service_that_is_required_fails_its_tests(suite):
    done = suite(ETT_REQUIRE_SERVICES="1")
    assert done.returncode == 1
    assert "1 passed, 1 error" in done.stdout
    assert "a required service is missing: promtool is not on PATH" in done.stdout


def test_any_skip_fails_a_run_that_requires_every_service(suite):
    text = "import pytest\n\ndef test_plain():\n    pass\n\ndef test_skips():\n    pytest.skip('lazy')\n"
    assert suite(text).returncode == 0
    for workers in ("0", "2"):
        done = suite(text, "-n", workers, ETT_REQUIRE_SERVICES="1")
        assert done.returncode == 1
        assert "1 skipped although every service is required" in done.stdout
        assert done.stdout.rstrip().splitlines()[-1].startswith("=")


def test_a_test_that_runs_again_has_an_exporter_to_which_nothing_was_told(suite):
    """With all that was made of the one before; tests after it share the new one."""
    text = """
import itertools, pytest
numbers = itertools.count()

@pytest.fixture(scope="session")
def exporter():
    return next(numbers)

@pytest.fixture(scope="module")
def posted(exporter):
    return f"told to {exporter}"

@pytest.mark.flaky(reruns=1)
def test_it(posted):
    assert posted == "told to 1"

def test_next(exporter, posted):
    assert (exporter, posted) == (1, "told to 1")
"""
    done = suite(text, "-p", "pytest_rerunfailures")
    assert (done.returncode, "2 passed, 1 rerun" in done.stdout) == (0, True), done.stdout


def test_a_service_that_nobody_knows_is_an_error(suite):
    done = suite(SUITE.replace("promtool", "tea"))
    assert done.returncode == 1
    assert "no service 'tea' is known" in done.stdout


def test_signals_that_are_ignored_around_the_tests_reach_what_they_start(suite):
    """As under `nohup`, or in the background of a shell without job control; the tests still ignore them."""
    text = """
import os, re, signal, subprocess

def test_dispositions():
    status = subprocess.run(["/bin/cat", "/proc/self/status"], capture_output=True, text=True).stdout
    ignored = int(re.search(r"SigIgn:\\s*(\\w+)", status)[1], 16)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        assert not ignored >> number - 1 & 1
        os.kill(os.getpid(), number)
"""
    around = ("/bin/sh", "-c", "trap '' INT QUIT HUP TERM; exec \"$@\"", "sh")
    for workers in ("0", "1"):
        done = suite(text, "-n", workers, before=around)
        assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
