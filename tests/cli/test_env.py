"""`ett env`: lines for a shell that name the job and put the observation in front of the path."""

from __future__ import annotations

import shlex

import pytest

from ett_cli.main import main
from ett_trainer_hooks.auto import SITE


@pytest.fixture
def printed(monkeypatch, capsys):
    """What `ett env` prints, as variables."""

    def run(*words, **environ):
        for name in ("ETT_JOURNAL_DIR", "PYTHONPATH"):
            monkeypatch.delenv(name, raising=False)
        for name, text in environ.items():
            monkeypatch.setenv(name, text)
        assert main(["env", *words]) == 0
        lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
        assert all(words[0] == "export" and len(words) == 2 for words in lines)
        return dict(words[1].split("=", 1) for words in lines)

    return run


def test_a_path_that_is_no_text_comes_to_the_shell_as_it_is(capfdbinary, tmp_path):
    """Byte by byte: an escape in its place would be another directory."""
    place = f"{tmp_path}/\udcff \x1b\u202e"
    assert main(["env", "--job-id", "j", "--journal-dir", place]) == 0
    assert f"ETT_JOURNAL_DIR='{place}'\n".encode(errors="surrogateescape") in capfdbinary.readouterr().out


def test_the_variables_name_the_job_and_keep_the_path(printed):
    """A name that no job may have is made one; blanks are quoted; the directory is absolute."""
    variables = printed("--job-id", "a b", "--journal-dir", "/data/of job", PYTHONPATH="/one:/two")
    assert variables == {
        "ETT_JOB_ID": "a-b",
        "ETT_JOURNAL_DIR": "/data/of job",
        "ETT_AUTO": "1",
        "PYTHONPATH": f"{SITE}:/one:/two",
    }
    assert printed("--job-id", "j", ETT_JOURNAL_DIR="/var/j")["ETT_JOURNAL_DIR"] == "/var/j"
    again = printed("--job-id", "j", PYTHONPATH=variables["PYTHONPATH"])
    assert again["PYTHONPATH"] == variables["PYTHONPATH"]


def test_without_observation_only_the_job_is_named(printed):
    """`--no-auto` leaves the path alone and says so to what is started below."""
    assert printed("--job-id", "j", "--journal-dir", "/data/j", "--no-auto") == {
        "ETT_JOB_ID": "j",
        "ETT_JOURNAL_DIR": "/data/j",
        "ETT_AUTO": "0",
    }
