"""The process `ett exporter`: starting, dying, stopping, and how it says no."""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest
from ett_here import status_of

from ett_cli.commands.exporter import add_arguments
from ett_exporter.settings import Settings

ETT = str(Path(sys.executable).with_name("ett"))


def test_an_acknowledged_segment_survives_kill_9(exporters, story, tmp_path):
    """Killed right after each answer, the exporter has everything that it acknowledged."""
    database = str(tmp_path / "ett.sqlite")
    told = story("survivor")
    for body in told.bodies().values():
        running = exporters("--database", database)
        answer = running.send(body)
        running.process.send_signal(signal.SIGKILL)
        assert answer.json()["accepted"] == body.count(b"\n")
        running.process.wait(60)
    after = exporters("--database", database)
    job = after.job("survivor")
    assert (job["wall_s"], job["state"], job["samples"]) == (142.0, "succeeded", 2 * 9 * 80)
    assert all(after.send(body).json()["accepted"] == 0 for body in told.bodies().values())


def test_sigterm_ends_it_cleanly(exporters, tmp_path):
    """SIGTERM and SIGINT end the process with status 0 and no word of complaint."""
    for number in (signal.SIGTERM, signal.SIGINT):
        running = exporters("--database", str(tmp_path / "ett.sqlite"))
        running.process.send_signal(number)
        assert running.process.wait(60) == 0
        assert running.process.stderr.read() == ""


def test_who_sends_while_it_stops_is_told_to_send_again(exporters, tmp_path):
    """A body of which no more comes holds the end up for seconds; its sender is told; a line is logged."""
    running = exporters("--database", str(tmp_path / "ett.sqlite"))
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=60) as sender:
        sender.sendall(b"POST /api/v1/segments HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n{")
        assert running.http.get("/healthz").status_code == 200
        running.process.send_signal(signal.SIGTERM)
        answer = HTTPResponse(sender)
        answer.begin()
        told = json.loads(answer.read())
    assert (answer.status, answer.getheader("Retry-After")) == (503, "2")
    assert told == {"error": "the exporter is stopping; try again"}
    assert running.process.wait(60) == 0
    said = running.process.stderr.read().splitlines()
    assert len(said) == 1
    assert "Cancel 1 running task" in said[0]


def test_it_listens_on_this_machine_only(exporters, tmp_path):
    """Without --host nothing but the loopback address is bound."""
    running = exporters("--database", str(tmp_path / "ett.sqlite"))
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", running.url)


def test_journals_of_a_watched_directory_appear(exporters, story, tmp_path, eventually):
    """With --watch a job appears from its journals alone."""
    journals = tmp_path / "journals"
    journals.mkdir()
    running = exporters("--database", str(tmp_path / "ett.sqlite"), "--watch", str(journals))
    for number, body in enumerate(story("written").bodies().values()):
        (journals / f"{number}.jsonl").write_bytes(body)
    eventually(lambda: running.http.get("/api/v1/jobs/written").status_code == 200)
    eventually(lambda: told_of(running.job("written")) == (2 * 9 * 80, 142.0))


def told_of(job):
    """The last word of each writer counts: all has come once both are right."""
    return job["samples"], job["wall_s"]


def test_the_log_can_be_read_by_machines(exporters, tmp_path):
    """With --log-format json each warning is one JSON object on a line of its own."""
    journals = tmp_path / "journals"
    journals.mkdir()
    (journals / "w.jsonl").write_text("no event\n")
    words = ["--database", str(tmp_path / "ett.sqlite"), "--watch", str(journals), "--log-format", "json"]
    running = exporters(*words)
    said = json.loads(running.process.stderr.readline())
    assert set(said) == {"time", "level", "logger", "message"}
    assert (said["level"], said["logger"]) == ("warning", "ett_exporter.watch")
    assert "w.jsonl: 1 lines are no events; line 1:" in said["message"]


def refusal(*words: str) -> str:
    """What `ett exporter` says when it cannot start, in one line."""
    done = subprocess.run([ETT, "exporter", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_port_in_use_is_said_so(tmp_path):
    """An address that somebody else listens on is named in one line."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert f"127.0.0.1:{port}: the port is in use" in refusal(
            "--port", port, "--database", str(tmp_path / "d")
        )


def test_a_database_that_cannot_be_opened_is_said_so(tmp_path):
    """A path that cannot be written and a URL that means nothing are named in one line."""
    (tmp_path / "file").write_text("")
    assert "cannot write" in refusal("--port", "0", "--database", str(tmp_path / "file" / "ett.sqlite"))
    assert "cannot open the database" in refusal("--port", "0", "--database", "nonsense://x")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--watch", "/nonexistent/none"), "--watch /nonexistent/none: no such directory"),
        (("--shard", "3/3"), "--shard 3/3: shards are counted from 0"),
        (("--shard", "one"), "--shard needs a share such as 0/3, not 'one'"),
        (("--retain", "2"), "--retain needs days, at least 8, or 0 for no end, not 2"),
        (("--port", "70000"), "--port 70000 is not between 0 and 65535"),
        (("--ended-grace-s", "nan"), "--ended-grace-s needs seconds, at least 0, not nan"),
        (("--ended-grace-s", "-1"), "--ended-grace-s needs seconds, at least 0, not -1"),
        (("--host", ""), "--host needs an address"),
        (("--host", "0.0.0.0"), "--host 0.0.0.0 lets other machines in: give --tokens FILE"),  # noqa: S104 - refused
        (("--host", "::"), "--host :: lets other machines in: give --tokens FILE"),
        (("--price", "H200=-1"), "--price H200=-1 is no price of an hour"),
    ],
)
def test_wrong_settings_are_named_by_their_option_with_status_two(words, said, capsys):
    """What cannot work is refused, in one line, by the name under which it was given."""
    assert status_of("exporter", *words) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert f"ett exporter: {said}" in err


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b"])
def test_an_address_that_is_not_ours_is_said_so(host, tmp_path):
    """Another machine's address and what is no name of a host are named in one line."""
    said = refusal("--insecure", "--host", host, "--port", "9410", "--database", str(tmp_path / "d"))
    assert said.startswith(f"ett exporter: cannot listen on {host}:9410: ")


def test_the_command_line_has_the_defaults_of_the_settings():
    """What --help shows as a default is what the settings say."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = vars(parser.parse_args([]))
    assert given.pop("command") is None
    expected = {name: getattr(Settings(), name) for name in given}
    assert {**given, "watch": tuple(given["watch"])} == expected


def test_every_option_stands_in_the_documents():
    """docs/exporter.md names each option with its default."""
    text = (Path(__file__).parents[2] / "docs" / "exporter.md").read_text()
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for action in [action for action in parser._actions[1:] if action.option_strings]:
        default = f"`{action.default}`" if action.default else "none"
        assert f"| `{action.option_strings[0]}` | {default} |" in text
