"""Exit statuses mean the same for all commands: 2 a wrong command line, 1 it did not work, 130 Ctrl-C."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys

import pytest

from ett_cli.main import COMMANDS, main
from ett_core.events import Compile, encode

NOWHERE = "http://127.0.0.1:1"
TOO_WRONG_TO_START = {
    "demo": "--steps 0",
    "simulate": "--truth t --jobs 0",
    "run": "--max-restarts -1 -- true",
    "env": "",
    "ship": "{}",
    "exporter": "--tokens {}/none --port 0 --database {}/d",
    "dashboard": "--exporter there",
    "grafana": "push",
    "account": "{} --now tomorrow",
    "diagnose": "",
    "failures": "--exporter there",
    "report": "--out {}/r.html",
    "import": "{} --year 1",
    "train": "--config {}/none",
    "interval": "--blocking-s 1 --failures 2",
    "advise": "dynamic",
    "cache": "gc {} --limit much",
    "publish": "--watch {}",
}
"""Of each command a line that cannot work anywhere; `{}` is an empty directory."""
WITHOUT_SUCCESS = {
    "demo": "--no-app --run-dir {} --port {port}",
    "simulate": "--jobs 1 --days 0.1 --end 1764000000 --truth {}/none/truth.json",
    "ship": "{}/none --exporter NOWHERE",
    "exporter": "--port {port} --database {}/d",
    "dashboard": "--port {port}",
    "grafana": "failures --url NOWHERE --exporter NOWHERE",
    "account": "{}",
    "diagnose": "{}",
    "failures": "--exporter NOWHERE",
    "report": "job --out {}/r.html --exporter NOWHERE",
    "import": "{}/none",
    "advise": "dynamic {}/none",
    "cache": "verify {}/none",
    "publish": "{}",
}
"""Of each command a line that could work, and does not here; `{port}` is taken."""
OF_ANOTHER = ("run", "train")
"""They return the status of the command that they ran."""
NEVER_IN_VAIN = ("env", "interval")
"""They ask nothing of the machine."""


@pytest.fixture
def status(tmp_path, monkeypatch, capsys):
    """Runs `ett` in this process; its exit status and what it complained of."""
    for name in [name for name in os.environ if name.startswith("ETT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    handlers, level = list(logging.root.handlers), logging.root.level

    def run(name, line):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            words = line.replace("NOWHERE", NOWHERE).replace("{port}", str(port)).replace("{}", str(empty))
            try:
                number = main([name, *words.split()])
            except SystemExit as stop:
                number = stop.code
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return number, said.err

    yield run
    logging.root.handlers, logging.root.level = handlers, level


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_there_is_not_is_status_two(name, status):
    number, complaint = status(name, "--nonsense")
    assert number == 2
    assert f"ett {name}" in complaint


@pytest.mark.parametrize("name", COMMANDS)
def test_what_cannot_work_anywhere_is_status_two_and_a_sentence(name, status, tmp_path):
    number, complaint = status(name, TOO_WRONG_TO_START[name])
    assert number == 2
    assert f"ett {name}" in complaint
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"], "it did something"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in (*OF_ANOTHER, *NEVER_IN_VAIN)])
def test_what_did_not_work_is_status_one_and_a_sentence(name, status):
    number, complaint = status(name, WITHOUT_SUCCESS[name])
    assert number == 1
    assert complaint.strip()


def test_ctrl_c_is_status_130_and_no_traceback(tmp_path):
    """A command that reads is told to stop while it waits for more."""
    os.mkfifo(tmp_path / "pipe")
    ett = [sys.executable, "-c", "import sys; from ett_cli.main import main; sys.exit(main())"]
    child = subprocess.Popen([*ett, "account", str(tmp_path / "pipe")], stderr=subprocess.PIPE)
    with (tmp_path / "pipe").open("wb"):  # opens once the other end does
        child.send_signal(signal.SIGINT)
        _, complaint = child.communicate(timeout=60)
    assert (child.returncode, complaint) == (130, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [["--help"], ["account", "--help"], ["advise", "dynamic", "--json", "job"], ["simulate", "--out", "-"]],
)
def test_where_whoever_reads_has_left_it_ends_without_a_word_about_it(words, unbuffered, tmp_path):
    """As in `ett ... | head`."""
    compiled = Compile(job_id="j", writer="w", seq=0, attempt=0, rank=0, time=1.7e9, graph="0/0", code="f")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "w.jsonl").write_bytes(encode(compiled) + b"\n")
    reads, writes = os.pipe()
    os.close(reads)
    ett = [sys.executable, "-c", "import sys; from ett_cli.main import main; sys.exit(main())"]
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(
        [*ett, *words],
        stdout=writes,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
        check=False,
        timeout=60,
    )
    os.close(writes)
    assert ran.returncode in (0, 1)  # argparse does not care
    assert "roken" not in ran.stderr.decode()
