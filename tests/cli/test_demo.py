"""The parts of the demo: commands, processes, children, words and the verdict."""

import argparse
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ett_cli.commands import demo
from ett_cli.demo import stage as stages
from ett_cli.demo.children import Children
from ett_cli.demo.evidence import account_of_journals, component_series
from ett_cli.demo.play import DemoError, Play
from ett_cli.demo.processes import environment, marked, parent, rank_process
from ett_cli.demo.stage import FIRST_PORT, MARK, Stage, free_port
from ett_cli.demo.verdict import failed, verdict
from ett_cli.demo.words import doing, line, places, where_to_go_on
from ett_cli.main import main

LIMIT_S = 60.0
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
IGNORE_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
LEAVE_AN_ORPHAN = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
"""
STUBBORN = [sys.executable, "-c", IGNORE_SIGTERM]
ORPHANING = [sys.executable, "-c", LEAVE_AN_ORPHAN]


def until(condition, limit_s=LIMIT_S):
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def stage(tmp_path):
    return Stage(job_id=f"demo-{tmp_path.name}", run_dir=tmp_path, exporter_port=1, app_port=2, steps=900)


@pytest.fixture
def marks(stage):
    return stages.service_environment(stage)


def fake_process(proc, pid, ppid, **variables):
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    pairs = [f"{name}={value}".encode() for name, value in variables.items()]
    (folder / "environ").write_bytes(b"\0".join([*pairs, b""]))
    (folder / "stat").write_text(f"{pid} (python (x) y) S {ppid} 1 1 0")


def test_a_rank_is_found_among_its_helpers_and_other_runs(tmp_path):
    """Helpers inherit the environment of their rank; the rank is the one whose parent is not of it."""
    (tmp_path / "self").mkdir()
    fake_process(tmp_path, 10, 1, **{MARK: "a"})
    fake_process(tmp_path, 30, 10, **{MARK: "a", "RANK": "1"})
    fake_process(tmp_path, 20, 30, **{MARK: "a", "RANK": "1"})
    fake_process(tmp_path, 11, 10, **{MARK: "a", "RANK": "0"})
    fake_process(tmp_path, 12, 10, **{MARK: "b", "RANK": "1"})
    assert rank_process(MARK, "a", 1, proc=tmp_path) == 30
    assert rank_process(MARK, "a", 2, proc=tmp_path) is None
    assert sorted(marked(MARK, "b", proc=tmp_path)) == [12]


def test_a_process_that_is_gone_has_no_environment_and_no_parent(tmp_path):
    """Looking at a process that ends meanwhile is no error."""
    assert environment(99, proc=tmp_path) == {}
    assert parent(99, proc=tmp_path) is None


def test_stopping_kills_also_what_ignores_sigterm(stage, marks, tmp_path):
    """A child that does not want to end is killed after the grace."""
    with Children(MARK, stage.job_id, grace_s=0.2) as children:
        child = children.start("stubborn", STUBBORN, marks, tmp_path / "log")
        until(lambda: "up" in child.tail())
    assert child.process.poll() == -9


def test_stopping_kills_also_what_left_the_group(stage, marks, tmp_path):
    """An orphan in a process group of its own is found by the mark of the run."""
    with Children(MARK, stage.job_id, grace_s=0.2) as children:
        child = children.start("launcher", ORPHANING, marks, tmp_path / "log")
        assert child.process.wait(LIMIT_S) == 0
        orphans = list(marked(MARK, stage.job_id))
        assert len(orphans) == 1
    until(lambda: not list(marked(MARK, stage.job_id)))


def test_processes_of_another_run_are_left_alone(stage, marks, tmp_path):
    """Stopping ends what carries the mark of this run and nothing else."""
    other = subprocess.Popen(SLEEPER, env={**marks, MARK: "another"})
    try:
        with Children(MARK, stage.job_id, grace_s=0.2) as children:
            children.start("sleeper", SLEEPER, marks, tmp_path / "log")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_service_that_dies_ends_the_demo_with_its_last_words(stage, monkeypatch):
    """The message names the child and shows the tail of its log."""
    words = [sys.executable, "-c", "print('no such port'); raise SystemExit(3)"]
    monkeypatch.setattr(stages, "exporter_command", lambda _stage: words)
    with Children(MARK, stage.job_id) as children, pytest.raises(DemoError) as ended:
        Play(stage, children, say=lambda _: None).run(allocated_at=1.0)
    assert "the exporter ended" in str(ended.value)
    assert "no such port" in str(ended.value)


class Answering(BaseHTTPRequestHandler):
    """An exporter of somebody else: it says ok to everything."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_words):
        pass


@pytest.fixture
def foreign_port():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_an_exporter_that_answers_in_place_of_ours_ends_the_demo(tmp_path, foreign_port):
    """Ours cannot listen and dies: that is noticed before anything else starts, whoever answers there."""
    stage = Stage(job_id="j", run_dir=tmp_path, exporter_port=foreign_port, app_port=2, steps=9)
    said = []
    with Children(MARK, f"foreign-{os.getpid()}") as children, pytest.raises(DemoError) as ended:
        Play(stage, children, say=said.append).run(allocated_at=1.0)
    assert "the exporter ended while waiting until the exporter answers" in str(ended.value)
    assert f"{foreign_port}: the port is in use" in str(ended.value)
    assert [text for text in said if "starting" in text] == [said[0]]


def test_what_an_earlier_run_left_in_a_log_is_not_said_by_this_child(stage, marks, tmp_path):
    """Output is that of the process, though its log holds more."""
    (tmp_path / "log").write_text("serving http://127.0.0.1:1\n")
    with Children(MARK, stage.job_id) as children:
        child = children.start("one", [sys.executable, "-c", "print('mine')"], marks, tmp_path / "log")
        assert child.process.wait(LIMIT_S) == 0
    assert child.new_output() == "mine\n"
    assert child.tail() == "serving http://127.0.0.1:1\nmine"


def test_a_free_port_is_none_that_a_connection_may_get_before_a_service_listens_there(tmp_path, monkeypatch):
    """The kernel gives away those of a range; where it does not say which, or all, any free one will do."""
    monkeypatch.setattr(stages, "KERNELS_PORTS", tmp_path / "range")
    for said in ("32768\t60999\n", "12000 65535"):
        (tmp_path / "range").write_text(said)
        assert FIRST_PORT <= free_port() < int(said.split()[0])
    for said in ("1024 65535", ""):
        (tmp_path / "range").write_text(said)
        assert free_port() > 0


def demo_refusal(capsys, *words: str) -> tuple[int, str]:
    """Status and complaint of `ett demo` where it starts nothing."""
    status = main(["demo", "--no-app", *words])
    out, err = capsys.readouterr()
    assert out == ""
    return status, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "0"], "--steps needs at least 1, not 0"),
        (["--steps", "-5"], "--steps needs at least 1, not -5"),
        (["--port", "70000"], "--port 70000 is not between 0 and 65535"),
        (["--app-port", "-1"], "--app-port -1 is not between 0 and 65535"),
        (["--port", "5000", "--app-port", "5000"], "--port and --app-port are both 5000"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name_with_status_two(words, said, capsys):
    """Nothing starts, and no directory is made."""
    assert demo_refusal(capsys, *words) == (2, f"ett demo: {said}\n")


def test_a_run_directory_that_cannot_be_is_refused_with_status_two(tmp_path, capsys, monkeypatch):
    """A file, a place below one, and a place where nothing can be written."""
    monkeypatch.setattr(demo, "NEEDED", ())
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        said = f"ett demo: --run-dir {path} is or lies below a file, not a directory\n"
        assert demo_refusal(capsys, "--run-dir", str(path)) == (2, said)
    status, said = demo_refusal(capsys, "--run-dir", "/proc/self/fd")
    assert (status, said.partition(":")[0]) == (2, "ett demo")
    assert "--run-dir /proc/self/fd cannot be written" in said


def test_a_port_that_is_taken_is_refused_with_status_one(tmp_path, foreign_port, capsys, monkeypatch):
    """Whoever listens there, nothing starts."""
    monkeypatch.setattr(demo, "NEEDED", ())
    said = f"ett demo: --port: cannot listen on 127.0.0.1:{foreign_port}: the port is in use\n"
    assert demo_refusal(capsys, "--port", str(foreign_port), "--run-dir", str(tmp_path)) == (1, said)


def test_the_last_lines_say_where_to_go_on(stage):
    """While it serves: job and metrics; always the command that accounts anew from the journals."""
    account = f"ett account {stage.journal_dir}"
    served, again = where_to_go_on(stage, stays=True).splitlines()
    assert stage.job_url in served
    assert f"{stage.exporter_url}/metrics" in served
    assert again == f"The same account from the journals: {account}"
    assert where_to_go_on(stage, stays=False) == again


def test_the_deadline_says_what_it_waited_for_and_where_the_logs_are(stage, tmp_path, monkeypatch):
    """A service that never answers ends the demo at the limit, not later and not for ever."""
    monkeypatch.setattr(stages, "exporter_command", lambda _stage: SLEEPER)
    now_s = [0.0]

    def pause(pause_s):
        now_s[0] += 40 * pause_s

    with Children(MARK, stage.job_id, grace_s=0.5) as children:
        play = Play(stage, children, say=lambda _: None, clock=lambda: now_s[0], pause=pause)
        with pytest.raises(DemoError) as ended:
            play.run(allocated_at=1.0)
    assert str(ended.value) == (
        f"280 s were up while waiting until the exporter answers; the logs are in {tmp_path}"
    )
    assert now_s[0] <= 280.0 + 40 * 0.5


def test_the_trainer_runs_under_the_launcher_with_its_labels(stage):
    """The command and the environment name the job, the exporter, the labels and the allocation."""
    command = stages.trainer_command(stage)
    at = command.index("--")
    assert {"--job-id", stage.job_id, "--exporter", stage.exporter_url} <= set(command[:at])
    assert command[at + 2 : at + 4] == ["-m", "torch.distributed.run"]
    environment = stages.trainer_environment(stage, 1.5, {"ETT_ATTEMPT": "7", "PATH": "/bin"})
    assert "ETT_ATTEMPT" not in environment
    assert environment["PATH"] == "/bin"
    assert (environment["ETT_ALLOCATED_AT"], environment["ETT_LABEL_MODEL"]) == ("1.5", "dlrm")


def test_a_line_says_what_goes_on_and_where_to_look(stage):
    """Seconds, words, a place; without the app the places are those of exporter and log."""
    job = {
        "state": "training",
        "step": 8,
        "last_durable_step": 5,
        "unsaved_exposure_s": 2.0,
        "ett_percent": 40.0,
    }
    text = line(12.0, doing(job, 900), places(stage)[0])
    assert text == (
        "[   12 s] training, step 8 of 900, saved up to 5, 2.0 s unsaved, ETT 40 % "
        f"· job http://127.0.0.1:2/job?id={stage.job_id}"
    )
    without = Stage(job_id="j", run_dir=stage.run_dir, exporter_port=1, app_port=2, steps=9, app=False)
    assert not any("job?id" in place for place in places(without))


@dataclass(frozen=True)
class Recomputed:
    components: dict[str, float]


GOOD = {
    "state": "succeeded",
    "ttr_s": [9.0],
    "failure_list": [{"fallback_step": 200}],
    "wall_s": 10.0,
    "components": {"training": 7.0, "recover.restart": 3.0},
}


def judge(job=None, recomputed=None, series=None):
    """Sentences that do not hold, for a good job that is changed in one place."""
    components = GOOD["components"]
    account = Recomputed(components if recomputed is None else recomputed)
    return failed(verdict({**GOOD, **(job or {})}, account, components if series is None else series))


def test_a_recovered_job_that_adds_up_passes():
    """No sentence fails."""
    assert judge() == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"job": {"state": "failed"}}, "the job succeeded"),
        ({"job": {"ttr_s": []}}, "every failure was recovered from"),
        ({"job": {"ttr_s": [9.0, None]}}, "every failure was recovered from"),
        ({"job": {"failure_list": [{"fallback_step": 0}]}}, "it resumed from a durable checkpoint"),
        ({"job": {"failure_list": [{"fallback_step": None}]}}, "it resumed from a durable checkpoint"),
        ({"job": {"wall_s": 10.001}}, "the components add up to the wall time"),
        ({"recomputed": {"training": 7.002, "recover.restart": 2.998}}, "the journals give the same account"),
        ({"series": {"training": 7.0}}, "/metrics shows the same partition"),
        ({"series": {}}, "/metrics shows the same partition"),
    ],
)
def test_each_promise_that_is_broken_fails_its_own_check(changed, words):
    """Exactly the sentence about it does not hold."""
    (sentence,) = judge(**changed)
    assert sentence.startswith(words)


def test_a_job_that_no_journal_knows_fails():
    """Without events on disk there is nothing to compare with."""
    assert failed(verdict(GOOD, None, GOOD["components"])) == ["the journals hold no event of the job"]


def test_the_account_of_journals_is_of_one_job_alone(tmp_path):
    """Events of other jobs in the same directory do not count; without any there is no account."""
    event = (
        '{"v":1,"job_id":"%s","writer":"w%d","seq":0,"attempt":0,"rank":0,"node":"n","time":%d.0,'
        '"kind":"attempt_start","world_size":1}\n'
    )
    (tmp_path / "w.jsonl").write_text(event % ("mine", 1, 1000) + event % ("theirs", 2, 10))
    account = account_of_journals(tmp_path, "mine", now=1030.0)
    assert account.wall_s == 30.0
    assert account_of_journals(tmp_path, "nobody's", now=1030.0) is None


def test_the_series_of_one_job_are_read_from_metrics():
    """Other jobs and other families are left out; what is no exposition is a ValueError."""
    family = "ett_job_component_seconds"
    page = (
        f"# HELP {family} x\n# TYPE {family} gauge\n"
        f'{family}{{job_id="a",component="training"}} 7.5\n{family}{{job_id="b",component="training"}} 1\n'
        'ett_job_wall_seconds{job_id="a"} 9\n'
    )
    assert component_series(page, "a") == {"training": 7.5}
    with pytest.raises(ValueError, match="Invalid value"):
        component_series('ett_job_component_seconds{job_id="a" 1 2 3', "a")


@pytest.mark.parametrize(("headless", "least_s", "most_s"), [(True, 200, 300), (False, 1800, 7200)])
def test_who_watches_is_left_more_time_than_a_machine(tmp_path, headless, least_s, most_s):
    arguments = argparse.Namespace(steps=900, no_app=True, headless=headless)
    assert least_s <= demo._stage(arguments, "j", tmp_path, (1, 2)).limit_s <= most_s
