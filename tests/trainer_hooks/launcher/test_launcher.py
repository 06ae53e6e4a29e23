"""`ett run` end to end: real programs that succeed, crash, are killed, or outlive the launcher."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ett_here import status_of

from ett_trainer_hooks.journal.place import writable_place
from ett_trainer_hooks.launcher import LaunchSettings
from ett_trainer_hooks.launcher.cgroup import OomCounter

ETT = str(Path(sys.executable).with_name("ett"))

TRAIN = """
import os, signal, sys, threading
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
restart = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
last_rank = recorder.identity.rank == int(os.environ.get("WORLD_SIZE", "1")) - 1
print("to stdout"); print("to stderr", file=sys.stderr)
recorder.resumed(10 * restart)
pause = threading.Event()
for number in recorder.batches(range(12)):
    pause.wait(0.02)
    if number == 10 and restart == 0 and last_rank:
        {then}
recorder.close()
"""

ELASTIC = """
import os, subprocess, sys
for restart in range(2):
    environ = {**os.environ, "TORCHELASTIC_RESTART_COUNT": str(restart)}
    status = subprocess.call([sys.executable, sys.argv[1]], env=environ)
sys.exit(status)
"""

NOISY = """
import os, sys, threading
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
print("ready", flush=True)
for number in recorder.batches(range(200)):
    sys.stdout.write("x" * 50_000 + "\\n")
    threading.Event().wait(0.002)
recorder.close()
open(sys.argv[1], "w").write("finished")
"""


@pytest.fixture
def ran(ett_run, events_in, tmp_path):
    """Runs a program to its end: status, output and the launcher's events."""

    def run(program, *arguments, options=()):
        child = ett_run(program, *arguments, options=options)
        out, err = child.communicate(timeout=60.0)
        events = events_in(tmp_path / "journal")
        return child.returncode, out, err, [event for event in events if event.rank == -1]

    return run


def of(events, kind):
    return [event for event in events if event.kind == kind]


def test_a_command_that_succeeds_is_told_as_such_and_its_output_passes(ran):
    """Status 0, output on the streams where it was written, one beginning and one end."""
    status, out, err, told = ran(TRAIN.format(then="pass"), options=["--label", "team=ads"])
    assert (status, out) == (0, "to stdout\n")
    assert "to stderr\n" in err
    assert [event.kind for event in told] == ["attempt_start", "attempt_end", "job_end"]
    assert told[0].labels == {"team": "ads"}
    assert told[0].process_started_at < told[0].time
    assert (told[1].status, told[2].status) == ("succeeded", "succeeded")


def test_a_crash_leaves_its_last_lines_as_evidence_without_secrets(ran):
    """The traceback is kept, the password in it is not; the exit status passes."""
    status, _, err, told = ran(TRAIN.format(then="raise RuntimeError('login with password=hunter2')"))
    assert status == 1
    assert "hunter2" in err
    texts = [event.text for event in of(told, "evidence")]
    assert any("RuntimeError: login with password=***" in text for text in texts)
    assert not any("hunter2" in text for text in texts)
    assert of(told, "failure")[-1].exit_code == 1
    assert (told[-2].status, told[-1].status) == ("failed", "failed")


def test_a_rank_that_is_killed_is_spoken_for(ran):
    """The launcher tells who died, of which signal and when; its status is that of a shell."""
    status, _, _, told = ran(TRAIN.format(then="os.kill(os.getpid(), signal.SIGKILL)"))
    assert status == 128 + 9
    failure = of(told, "failure")[0]
    assert (failure.of_rank, failure.signal, failure.attempt) == (0, 9, 0)
    assert "SIGKILL" in failure.message
    assert told[-1].status == "failed"
    denials = [e.text for e in of(told, "evidence") if e.source == "kernel" and "ended no process" in e.text]
    assert len(denials) == (1 if OomCounter().denial() else 0)


def test_a_program_that_ends_with_status_0_and_no_word_has_not_failed(ran):
    """Missing `close` is no failure where the command succeeded."""
    status, _, _, told = ran(TRAIN.format(then="os._exit(0)"))
    assert status == 0
    assert of(told, "failure") == []
    assert told[-1].status == "succeeded"


def test_a_rank_that_vanishes_before_a_new_attempt_has_failed(ran, tmp_path):
    """The end that the launcher tells is that of the last attempt, the failure that of the first."""
    worker = tmp_path / "worker.py"
    worker.write_text(TRAIN.format(then="os._exit(0)"))
    status, _, _, told = ran(ELASTIC, str(worker))
    assert status == 0
    (failure,) = of(told, "failure")
    assert (failure.attempt, failure.of_rank) == (0, 0)
    (end,) = of(told, "attempt_end")
    assert (end.attempt, end.status) == (1, "succeeded")
    assert failure.time < end.time


@pytest.mark.service("torch")
def test_a_rank_killed_under_torchrun_is_told_with_its_signal_and_the_job_goes_on(
    ett_run, events_in, tmp_path
):
    """The signal comes from torchrun's log, the moment from the launcher's own eyes."""
    worker = tmp_path / "worker.py"
    worker.write_text(TRAIN.format(then="os.kill(os.getpid(), signal.SIGKILL)"))
    torchrun = (
        "from torch.distributed.run import main; import sys; "
        f"sys.argv = ['torchrun', '--nproc-per-node', '2', '--max-restarts', '1', '--rdzv-backend', 'c10d', "
        f"'--rdzv-endpoint', '127.0.0.1:0', '--rdzv-id', 'job', {str(worker)!r}]; main()"
    )
    child = ett_run(torchrun)
    _, err = child.communicate(timeout=120.0)
    assert child.returncode == 0, err
    events = events_in(tmp_path / "journal")
    told = [event for event in events if event.rank == -1]
    failure = of(told, "failure")[0]
    assert (failure.of_rank, failure.signal, failure.attempt) == (1, 9, 0)
    last_words = max(event.time for event in events if (event.rank, event.attempt) == (1, 0))
    next_start = min(event.time for event in events if event.attempt == 1)
    assert last_words <= failure.time <= next_start
    assert {event.attempt for event in events if event.rank == 0} == {0, 1}
    assert [(event.attempt, event.status) for event in of(told, "attempt_end")] == [(1, "succeeded")]
    assert told[-1].kind == "job_end"
    assert any("exitcode: -9" in event.text for event in of(told, "evidence"))


RECORDED = """
import os, sys, threading
from torch.distributed.elastic.multiprocessing.errors import record
from ett_trainer_hooks import Recorder

@record
def main():
    Recorder.from_env()
    print("hello from", os.environ["RANK"], flush=True)
    if os.environ["RANK"] == "1":
        sys.excepthook = sys.__excepthook__
        raise ValueError("login with password=hunter2")
    threading.Event().wait(60)

main()
"""


@pytest.mark.service("torch")
def test_the_error_file_of_a_rank_is_evidence_and_dates_its_failure(ett_run, events_in, tmp_path):
    """What a program under `@record` wrote down, and the output that torchrun sent to files."""
    worker = tmp_path / "worker.py"
    worker.write_text(RECORDED)
    logs = tmp_path / "logs"
    torchrun = (
        "from torch.distributed.run import main; import sys; "
        f"sys.argv = ['torchrun', '--nproc-per-node', '2', '--redirects', '3', '--log-dir', {str(logs)!r}, "
        f"{str(worker)!r}]; main()"
    )
    child = ett_run(torchrun, PET_EVENT_LOG_HANDLER="console")
    child.communicate(timeout=120.0)
    assert child.returncode == 1
    told = [event for event in events_in(tmp_path / "journal") if event.rank == -1]
    elastic = [event for event in of(told, "evidence") if event.source == "elastic"]
    assert "ValueError: login with password=***" in elastic[0].text
    assert elastic[0].text.startswith("rank 1 (pid ")
    (logged,) = [event.text for event in elastic if event.text.startswith("torchrun: ")]
    assert logged.endswith("failed: ValueError: login with password=***")
    failure = next(event for event in of(told, "failure") if event.of_rank == 1)
    assert (failure.exception, failure.message) == ("ValueError", "login with password=***")
    assert failure.exit_code == 1
    assert failure.first_error_at == elastic[0].observed_at
    assert failure.first_error_at <= failure.time <= of(told, "attempt_end")[0].time
    tails = [event.text for event in of(told, "evidence") if event.source == "stdout"]
    assert "last output of rank 1:\nhello from 1" in tails
    assert not any("hunter2" in event.text for event in of(told, "evidence"))
    command = of(told, "failure")[-1]
    assert (command.exception, command.of_rank, command.exit_code) == ("ValueError", None, 1)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, "preempted"), (signal.SIGINT, "cancelled")])
def test_a_signal_to_the_launcher_reaches_the_command_and_names_the_end(
    ett_run, events_in, tmp_path, number, status
):
    """SIGTERM is a preemption, SIGINT a cancellation, told for the moment of the signal."""
    child = ett_run(TRAIN.format(then="print('ready', flush=True); pause.wait(60)"))
    assert child.stdout.readline() == "to stdout\n"
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    child.communicate(timeout=60.0)
    told = [event for event in events_in(tmp_path / "journal") if event.rank == -1]
    assert child.returncode in (128 + number, 1)
    assert (of(told, "attempt_end")[0].status, told[-1].status) == (status, status)
    if status == "cancelled":
        failures = [event for event in events_in(tmp_path / "journal") if event.kind == "failure"]
        assert all(event.time >= of(told, "attempt_end")[0].time for event in failures)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_launcher_that_is_killed_or_stopped_stops_no_step(ett_run, events_in, eventually, tmp_path, number):
    """The command goes on under heavy output and ends as ever."""
    mark = tmp_path / "finished"
    child = ett_run(NOISY, str(mark))
    assert child.stdout.readline() == "ready\n"
    os.kill(child.pid, number)
    eventually(mark.exists)
    ranks = [event for event in events_in(tmp_path / "journal") if event.rank == 0]
    assert ranks[-1].kind == "attempt_end"
    assert of(ranks, "progress")[-1].step == 200


def test_everything_that_was_said_is_shipped_before_the_launcher_leaves(ran, exporter, events_in, tmp_path):
    """Ranks and launcher, each event once."""
    exporter.answers = [(503, {"Retry-After": "0"})]
    status, *_ = ran(TRAIN.format(then="pass"), options=["--exporter", exporter.url])
    assert status == 0
    said = {(event.writer, event.seq) for event in events_in(tmp_path / "journal")}
    assert {(event.writer, event.seq) for event in exporter.distinct()} == said
    assert len(exporter.lines) == len(said)


def test_what_could_not_be_shipped_is_told_with_the_last_answer(ran, exporter):
    """A launcher that shipped to a server of another kind says so, and passes the exit status."""
    exporter.answers = [(404, {})] * 50
    status, _, err, _ = ran("raise SystemExit(6)", options=["--exporter", exporter.url])
    assert status == 6
    assert "(the last answer: 404 Not Found: is that an ettwatch exporter?); send them with: ett ship" in err


def test_a_flood_of_errors_is_bounded(ran):
    """At most fifty lines an attempt are told, and at the end the last 48 KiB whatever came before."""
    flood = "import sys\nfor n in range(5000): print(f'Error {n}', file=sys.stderr)\nsys.exit(1)\n"
    status, _, err, told = ran(flood)
    assert status == 1
    assert len(re.findall(r"^Error \d+$", err, re.MULTILINE)) == 5000
    evidence = of(told, "evidence")
    assert [event.text for event in evidence[:50]] == [f"Error {n}" for n in range(50)]
    tail = evidence[50:]
    assert 40 << 10 < sum(len(event.text) + 1 for event in tail) <= 48 << 10
    assert all(len(event.text) <= 8192 for event in tail)
    assert evidence[-1].text.endswith("Error 4999")


def test_a_command_that_does_not_exist_is_said_and_told(tmp_path, trainer_env, events_in):
    """Status 127 as in a shell; the journal says that the job failed."""
    words = [
        ETT,
        "run",
        "--job-id",
        "job",
        "--journal-dir",
        str(tmp_path / "journal"),
        "--",
        "no-such-program",
    ]
    done = subprocess.run(words, env=trainer_env, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "no-such-program" in done.stderr
    assert [event.kind for event in events_in(tmp_path / "journal")][-3:] == [
        "failure",
        "attempt_end",
        "job_end",
    ]


@pytest.mark.parametrize(
    ("options", "named"),
    [(["--exporter", "nowhere"], "nowhere"), (["--label", "team"], "NAME=TEXT"), ([], "command")],
)
def test_a_wrong_command_line_is_refused(options, named, tmp_path, capsys):
    """Status 2, and the setting is named."""
    words = ["--journal-dir", str(tmp_path), *options, "--", *(["true"] if options else [])]
    assert status_of("run", *words) == 2
    assert named in capsys.readouterr().err


def test_a_launcher_that_cannot_watch_still_passes_the_exit_status(ran):
    """The command removes the journals under the launcher; its status comes through all the same."""
    program = "import os, shutil, sys\nshutil.rmtree(os.environ['ETT_JOURNAL_DIR'])\nsys.exit(5)\n"
    status, *_ = ran(program)
    assert status == 5


def test_only_the_launcher_of_the_first_node_tells_that_the_job_has_ended(ett_run, tmp_path, events_in):
    child = ett_run("print('done')", NODE_RANK="1")
    child.communicate(timeout=60)
    kinds = [event.kind for event in events_in(tmp_path / "journal")]
    assert kinds == ["attempt_start", "attempt_end"]


SEVEN = (
    "import os, sys; print(os.environ.get('ETT_DISABLED'), os.environ.get('ETT_JOURNAL_DIR')); sys.exit(7)"
)


def ett(*words, environ):
    done = subprocess.run([ETT, *map(str, words)], env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("place", "reason"),
    [("/proc/nope", "No such file or directory"), ("{tmp}/file", "Not a directory"),
     ("{tmp}/file/below", "Not a directory")],
)  # fmt: skip
def test_a_journal_directory_that_cannot_be_written_gives_way_to_a_temporary_one(
    tmp_path, trainer_env, events_in, place, reason
):
    """One sentence names both and the reason; events are kept, the exit status passes."""
    (tmp_path / "file").touch()
    wanted = place.format(tmp=tmp_path)
    environ = {**trainer_env, "ETT_JOURNAL_DIR": wanted, "TMPDIR": str(tmp_path)}
    status, out, err = ett("run", "--", sys.executable, "-c", SEVEN, environ=environ)
    (found,) = re.findall(
        rf"journal directory {wanted} cannot be written \({reason}\); events go to (\S+)\n", err
    )
    assert found.startswith(f"{tmp_path}/ett-")
    assert (status, out) == (7, f"None {found}\n")
    assert [event.kind for event in events_in(Path(found))][-1] == "job_end"
    assert f"ett account {found}" in err


def test_a_home_that_cannot_be_written_stops_no_training(trainer_env, tmp_path):
    """The default place is a wish as any other."""
    environ = {
        name: text for name, text in trainer_env.items() if name not in ("ETT_JOURNAL_DIR", "XDG_STATE_HOME")
    }
    environ |= {"HOME": "/proc/nope", "TMPDIR": str(tmp_path)}
    status, _, err = ett("run", "--", sys.executable, "-c", SEVEN, environ=environ)
    assert status == 7
    assert "journal directory /proc/nope/.local/state/ettwatch/job cannot be written" in err


def test_a_directory_without_room_is_found_before_the_command_starts(tmp_path):
    """A place is tried with a file, as a full or read-only disk can still be listed."""
    said = []
    place = writable_place(Path("/proc/self/fd"), said.append, lambda: tmp_path)
    assert place == tmp_path
    assert len(said) == 1


def test_without_any_place_for_events_the_command_runs_unobserved():
    """One warning, no directory."""

    def none_left():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    said = []
    assert writable_place(Path("/proc/nope"), said.append, none_left) is None
    (warning,) = said
    assert warning == (
        "journal directory /proc/nope cannot be written (No such file or directory), "
        "nor can a temporary one (No space left on device); the command runs unobserved"
    )


def test_a_command_that_runs_unobserved_has_the_hooks_off_and_its_own_output(trainer_env):
    """Where no directory at all takes a file, its status and output pass, and one line says so."""
    program = (
        "import sys; from ett_trainer_hooks.journal import place; from pathlib import Path\n"
        "place.writable_place.__defaults__ = (lambda: Path('/proc/nope'),)\n"
        "from ett_cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    environ = {**trainer_env, "ETT_JOURNAL_DIR": "/proc/nope"}
    words = [sys.executable, "-c", program, "run", "--", sys.executable, "-c", SEVEN]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "1 /proc/nope\n")
    assert done.stderr.count("\n") == 1
    assert "the command runs unobserved" in done.stderr


@pytest.mark.parametrize("name", ["ETT_ATTEMPT", "ETT_NODE_RANK"])
def test_a_variable_that_cannot_be_understood_stops_no_training(trainer_env, name):
    """It is named in one sentence; the command runs with the hooks off and its status passes."""
    environ = {**trainer_env, name: "abc"}
    status, out, err = ett("run", "--", sys.executable, "-c", SEVEN, environ=environ)
    assert (status, out.split()[0]) == (7, "1")
    assert err == f"ett run: {name}='abc' is not a whole number of 0 or more; the command runs unobserved\n"


def test_a_signal_reaches_a_command_that_runs_unobserved(ett_run):
    """SIGTERM to the launcher ends it, with the status of a shell."""
    child = ett_run("import time; print('ready', flush=True); time.sleep(60)", ETT_ATTEMPT="abc")
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=60.0) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("given", "said"),
    [("bad id!", "job id 'bad id!' holds characters that it may not; the job is bad-id-\n"),
     ("x" * 200, f"is longer than 128 characters; the job is {'x' * 128}\n"), ("good", "")],
)  # fmt: skip
def test_a_job_id_that_is_changed_is_told(trainer_env, given, said):
    """Whoever looks for the job must know its name; a good one needs no word."""
    _, _, err = ett("run", "--job-id", given, "--", "true", environ=trainer_env)
    assert said in err
    assert ("; the job is" in err) == bool(said)


HASTY = """
import os, sys, time
print("early")
until = time.monotonic() + 20.0
while not os.path.exists(sys.argv[1]) and time.monotonic() < until:
    time.sleep(0.02)
print(os.path.exists(sys.argv[1]))
"""


def test_the_output_of_python_passes_at_once(ett_run, tmp_path):
    """A line that nobody flushes is seen while the program goes on."""
    seen = tmp_path / "seen"
    child = ett_run(HASTY, str(seen))
    assert child.stdout.readline() == "early\n"
    seen.touch()
    assert child.stdout.readline() == "True\n"


def test_a_buffering_that_was_chosen_is_kept(tmp_path):
    """PYTHONUNBUFFERED is set only where it is not."""
    settings = LaunchSettings(command=["true"], job_id="j", journal_dir=tmp_path)
    assert settings.environment({})["PYTHONUNBUFFERED"] == "1"
    assert settings.environment({"PYTHONUNBUFFERED": ""})["PYTHONUNBUFFERED"] == ""


def test_what_a_dead_attempt_left_behind_is_shipped_by_the_next(ett_run, exporter, events_in, tmp_path):
    """Launcher and rank were killed with no exporter there; the next start of the job sends everything."""
    program = "import os; print('ready', flush=True); from ett_trainer_hooks import Recorder\n"
    program += "recorder = Recorder.from_env(); recorder.first_batch(); print(os.getpid(), flush=True)\n"
    program += "import time; [time.sleep(0.1) for _ in range(600)]\n"
    child = ett_run(program)
    child.stdout.readline()
    rank = int(child.stdout.readline())
    child.kill()
    os.kill(rank, signal.SIGKILL)
    child.wait(timeout=60.0)
    left = events_in(tmp_path / "journal")
    assert {event.rank for event in left} == {-1, 0}
    again = ett_run("print('done')", options=["--exporter", exporter.url])
    again.communicate(timeout=60.0)
    sent = {(event.writer, event.seq) for event in exporter.distinct()}
    assert {(event.writer, event.seq) for event in left} < sent
    assert sent == {(event.writer, event.seq) for event in events_in(tmp_path / "journal")}


@pytest.mark.service("torch")
def test_a_rank_that_is_killed_before_it_has_a_journal_is_told_by_its_signal(ett_run, events_in, tmp_path):
    """As for want of memory while it loads: torchrun's log is all that knows of it."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, time\nos.kill(os.getpid(), 9) if os.environ['RANK'] == '1' else time.sleep(60)"
    )
    torchrun = (
        "from torch.distributed.run import main; import sys; "
        f"sys.argv = ['torchrun', '--nproc-per-node', '2', {str(worker)!r}]; main()"
    )
    child = ett_run(torchrun)
    child.communicate(timeout=120.0)
    assert child.returncode == 1
    failures = of(events_in(tmp_path / "journal"), "failure")
    assert [(event.signal, event.exit_code) for event in failures] == [(9, None), (None, 1)]
    assert re.fullmatch(
        r"local rank 1 \(pid \d+\) was ended by signal 9 \(SIGKILL\) before it told anything",
        failures[0].message,
    )


STAMPED = "import sys, time; sys.stdout.write(repr(time.monotonic()))"


def test_nobody_waits_for_an_exporter_that_is_not_there(tmp_path, trainer_env):
    """The launcher leaves well before its drain time, and says how to send what is left."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    words = ["run", "--exporter", url, "--drain", "60", "--", sys.executable, "-c", STAMPED]
    _, out, err = ett(*words, environ=trainer_env)
    assert time.monotonic() - float(out) < 30.0
    assert f"send them with: ett ship {tmp_path / 'journal'} --exporter {url} --once" in err


def test_output_passes_byte_by_byte(tmp_path):
    """Binary, carriage returns, a line of a megabyte, no newline at the end: the same on both streams."""
    program = (
        "import random, sys\n"
        "data = random.Random(5).randbytes(300_000) + b'x' * 1_000_000\n"
        "data += b'\\r50%\\r100%\\n' + b'no newline'\n"
        "sys.stdout.buffer.write(data); sys.stderr.buffer.write(data)\n"
    )
    path = tmp_path / "program.py"
    path.write_text(program)
    words = [ETT, "run", "--quiet", "--job-id", "j", "--journal-dir", tmp_path / "journal", "--"]
    bare = subprocess.run([sys.executable, path], capture_output=True, check=True)
    done = subprocess.run([*words, sys.executable, path], capture_output=True, check=True)
    assert done.stdout == bare.stdout
    assert done.stderr == bare.stderr


FLOODING_AGENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
noise = b"Error in line\\n" * 20_000
died = None
while died is None or time.monotonic() < died + 4.0:
    sys.stderr.buffer.write(noise)
    time.sleep(0.02)
    if died is None and child.poll() is not None:
        died = time.monotonic()
print(repr(time.time()), flush=True)
sys.exit(child.returncode)
"""


def test_a_flood_of_output_does_not_delay_the_notice_of_a_death(ett_run, events_in, tmp_path):
    """A rank is killed while its parent floods stderr, and goes on doing so: the death is told meanwhile."""
    rank = (
        "import os, signal, time; from ett_trainer_hooks import Recorder\n"
        "recorder = Recorder.from_env(); recorder.first_batch(); time.sleep(2)\n"
        "print(repr(time.time()), flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    child = ett_run(FLOODING_AGENT, rank)
    out, _ = child.communicate(timeout=60.0)
    killed, flood_over = map(float, out.split())
    told = [event for event in events_in(tmp_path / "journal") if event.rank == -1]
    failure = next(event for event in of(told, "failure") if event.of_rank == 0)
    assert failure.signal == signal.SIGKILL
    assert killed <= failure.time < flood_over
    texts = [event.text for event in of(told, "evidence")]
    assert any("bytes of stderr came too fast to be searched for causes" in text for text in texts)
    assert len(texts) < 80


def test_a_launcher_within_a_launcher_of_the_job_leaves_the_end_to_it(ett_run, events_in, tmp_path):
    """A script under observation starts two commands the same way: the job ends once, with the script."""
    inner = [str(Path(sys.executable).with_name("ett")), "run", "--", "true"]
    child = ett_run(f"import subprocess\nfor _ in range(2): subprocess.run({inner!r}, check=True)\nexit(3)")
    assert child.wait(timeout=60.0) == 3
    told = events_in(tmp_path / "journal")
    assert [event.status for event in of(told, "attempt_end")] == ["succeeded", "succeeded", "failed"]
    assert [event.status for event in of(told, "job_end")] == ["failed"]


@pytest.mark.parametrize("url", ["ftp://host", "http://me:hunter2@host:99999", "http://"])
def test_an_exporter_in_the_environment_that_cannot_be_understood_stops_no_training(ett_run, url):
    """The variable is named, no password is shown, and the command runs."""
    child = ett_run("exit(3)", ETT_EXPORTER_URL=url, ETT_AUTO="maybe")
    _, err = child.communicate(timeout=60.0)
    assert child.returncode == 3
    assert "ETT_EXPORTER_URL: exporter address" in err
    assert "ETT_AUTO='maybe' is ignored" in err
    assert "hunter2" not in err


def test_a_password_in_the_address_of_an_exporter_is_not_shown(ett_run):
    """Nor is it needed to send what is left."""
    child = ett_run("pass", options=["--exporter", "http://me:hunter2@127.0.0.1:9", "--drain", "0"])
    _, err = child.communicate(timeout=60.0)
    assert "--exporter http://127.0.0.1:9 --once" in err
    assert "hunter2" not in err


@pytest.mark.parametrize("lack", ["ulimit -n 8", "ulimit -n 9", "ulimit -n 11", "ulimit -v 80000"])
def test_a_launcher_that_lacks_the_means_runs_the_command_all_the_same(trainer_env, tmp_path, lack):
    """Without descriptors or threads of its own to watch with, the status and the output still pass."""
    run = f"{lack}; {Path(sys.executable).with_name('ett')} run --journal-dir {tmp_path}/j -- "
    words = ["bash", "-c", run + "bash -c 'echo out; exit 3'"]
    done = subprocess.run(words, env=trainer_env, capture_output=True, text=True, check=False, timeout=60.0)
    assert (done.returncode, done.stdout) == (3, "out\n"), done.stderr


@pytest.mark.parametrize(
    ("name", "text"), [("ETT_EXPORTER_TOKEN", "hunter2 hunter2"), ("ETT_EXPORTER_TOKEN_FILE", "/nonexistent")]
)
def test_a_token_in_the_environment_that_is_none_stops_no_training(ett_run, name, text):
    """The variable is named, what it holds is not shown, and the command runs."""
    child = ett_run("exit(3)", options=["--exporter", "http://127.0.0.1:9"], **{name: text})
    _, err = child.communicate(timeout=60.0)
    assert child.returncode == 3
    assert name in err
    assert "hunter2" not in err
