"""The next start of a rank runs in a process that has prepared it, and nobody can tell by its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ett_trainer_hooks import Recorder, procfs
from ett_trainer_hooks.launcher.standby_place import PREFIX
from ett_trainer_hooks.launcher.standbys import Standbys
from ett_trainer_hooks.pipeline import standby
from ett_trainer_hooks.standby.handing_over import hand_over, is_ours
from ett_trainer_hooks.standby.wanted import Wanted

PATIENCE_S = 300.0
"""Until a standby, made on processors that are idle, is there."""
AGENT = """
import os, signal, subprocess, sys
environ = dict(os.environ, LOCAL_RANK="0", RANK="0", WORLD_SIZE="1", TORCHELASTIC_RUN_ID="x")
for start in range(int(os.environ.get("STARTS", "2"))):
    environ["TORCHELASTIC_RESTART_COUNT"] = str(start)
    words = sys.argv[1:] + (["more"] if start and "MORE" in os.environ else [])
    rank = subprocess.Popen([sys.executable, "-u", *words], env=environ, start_new_session=True)
    print("rank", rank.pid, flush=True)
    status = rank.wait()
    print("ended", status, flush=True)
sys.exit(0 if status == 0 else 1)
"""
TORCHRUN = """
from torch.distributed.run import main
main()
"""
TRAIN = """
import contextlib, os, pathlib, signal, sys, time
import warm
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import standby
recorder = Recorder.from_env()
start = os.environ["TORCHELASTIC_RESTART_COUNT"]

def turns(pid="self"):
    # how nice the session of a process is to others; nothing where the kernel looks at processes only
    try:
        return pathlib.Path(f"/proc/{{pid}}/autogroup").read_text().split()[-1:]
    except FileNotFoundError:
        return []

scores = [os.getpriority(os.PRIO_PROCESS, 0), pathlib.Path("/proc/self/oom_score_adj").read_text().strip()]
policies = {{os.sched_getscheduler(each.pid) for each in warm.workers}}
for thread in os.listdir("/proc/self/task"):
    with contextlib.suppress(ProcessLookupError):  # it has ended
        policies.add(os.sched_getscheduler(int(thread)))
print("scores", *scores, *policies, *turns())
for each in warm.workers:
    deadline = time.monotonic() + 60
    while turns(each.pid) != turns() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert turns(each.pid) == turns()
for each in warm.workers:
    each.kill()
print("start", start, "in", os.getpid(), "with", standby.prepared(), sys.argv[1:], __name__, flush=True)
for _ in recorder.batches(range(3)):
    pass
begun = pathlib.Path(os.environ["TMPDIR"], "begun")
if start == "1" and "AWAITS_ITS_END" in os.environ:
    first = os.readlink(begun)
    while pathlib.Path("/proc", first).exists():
        time.sleep(0.01)
standby.prepare(warm.up, "words")
place = pathlib.Path(os.environ["ETT_STANDBY"])
if start == "0":
    sockets = [place / f"{{rank}}.socket" for rank in range(int(os.environ["WORLD_SIZE"]))]
    while not (os.path.lexists(begun) if "ALONE" in os.environ else all(each.exists() for each in sockets)):
        time.sleep(0.01)
    if os.environ["RANK"] == os.environ.get("SPARED"):
        time.sleep(600)
    os.kill(os.getpid(), signal.SIGKILL)
{end}
"""
WARM = """
import contextlib, os, pathlib, signal, subprocess, time
workers = []
def up(*words):
    with contextlib.suppress(FileExistsError):
        os.symlink(str(os.getpid()), pathlib.Path(os.environ["TMPDIR"], "begun"))
    {fails}
    assert os.sched_getscheduler(0) == os.SCHED_IDLE or os.getuid() != 0
    turns = pathlib.Path("/proc/self/autogroup")
    assert not turns.exists() or turns.read_text().split()[-1:] in ([], ["19"])
    workers.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))  # ends when this process does
    assert "ETT_DISABLED" in os.environ and "ETT_STANDBY" not in os.environ
    return (words, os.getpid())
"""


def lives(pid):
    found = procfs.process_of(pid)
    return found is not None and found.lives


def standbys_of(place):
    """The processes of keepers and of standbys that still run as such."""
    found = []
    for each in procfs.processes():
        try:
            words = (procfs.PROC / str(each.pid) / "cmdline").read_bytes()
        except OSError:
            continue
        if each.lives and b"ett_trainer_hooks.standby" in words and str(place).encode() in words:
            found.append(each.pid)
    return found


@pytest.fixture
def short_place():
    """A directory that outlives the job; unlike that of a test its path is short enough for a socket."""
    place = Path(tempfile.mkdtemp(prefix="ett-"))
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def job(short_place, ett_run, events_in, tmp_path):
    """Runs a rank twice; how it ended, what was printed, and the events.

    Its temporary files lie in `place`.
    """

    class Job:
        place = short_place

        def start(
            self, end="recorder.close('succeeded')", *arguments, fails="", words=None, agent=AGENT, **environ
        ):
            (tmp_path / "train.py").write_text(TRAIN.format(end=end))
            (tmp_path / "warm.py").write_text(WARM.format(fails=fails))
            words = [str(tmp_path / "train.py")] if words is None else words
            environ |= {"TMPDIR": str(self.place)}
            options = ["--standby", "--grace", "5"]
            return ett_run(agent, *words, *arguments, options=options, **environ)

        def run(self, *arguments, **more):
            child = self.start(*arguments, **more)
            out, err = child.communicate(timeout=PATIENCE_S)
            self.err, self.status = err, child.returncode
            self.events = events_in(tmp_path / "journal")
            return out.splitlines()

        def decisions(self):
            return {event.what: event.why for event in self.events if event.kind == "decision"}

    return Job()


def process_in(line):
    return int(line.split(" in ")[1].split()[0])


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("recorder.close('succeeded')", 0),
        ("sys.exit(7)", 7),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    ],
)
def test_the_next_start_runs_in_the_standby_and_ends_as_it_would_have(job, end, status):
    """Same arguments, output and exit status; the events are those of a process that started then."""
    lines = job.run(end, "--steps", "3")
    first, second = (line for line in lines if line.startswith("start "))
    pid = process_in(second)
    assert first.endswith("with None ['--steps', '3'] __main__")
    assert second == f"start 1 in {pid} with (('words',), {pid}) ['--steps', '3'] __main__"
    assert lines[-1] == f"ended {status}"
    assert len({line for line in lines if line.startswith("scores ")}) == 1
    assert pid not in [int(line.split()[1]) for line in lines if line.startswith("rank ")]
    starts = [event for event in job.events if event.kind == "attempt_start" and event.rank == 0]
    assert [event.attempt for event in starts] == [0, 1]
    end_of_first = max(event.time for event in job.events if event.writer == starts[0].writer)
    assert starts[1].process_started_at > end_of_first - 0.05
    deaths = [event for event in job.events if event.kind == "failure" and event.attempt == 1]
    known = [(event.exit_code, event.signal) for event in deaths if event.rank == -1 and event.of_rank == 0]
    assert known == ([(None, -status)] if status < 0 else [])
    assert "the standby took over" in job.decisions()


def test_signals_to_the_rank_reach_the_program(job):
    """Those that torchrun sends when it stops a rank; the program's handler decides how it ends."""
    child = job.start(
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('waits', flush=True)\nwhile True: time.sleep(0.05)"
    )
    lines = []
    while not lines or lines[-1] != "waits":
        lines.append(child.stdout.readline().strip())
    rank = [int(line.split()[1]) for line in lines if line.startswith("rank ")][-1]
    os.kill(rank, signal.SIGTERM)
    out, _ = child.communicate(timeout=PATIENCE_S)
    assert out.splitlines()[-1] == "ended 5"


def test_a_rank_that_is_killed_takes_its_standby_with_it(job, eventually):
    """What torchrun ends is ended."""
    child = job.start("print('waits', flush=True)\nwhile True: time.sleep(0.05)")
    lines = []
    while not lines or lines[-1] != "waits":
        lines.append(child.stdout.readline().strip())
    rank = [int(line.split()[1]) for line in lines if line.startswith("rank ")][-1]
    running = process_in(lines[-2])
    assert lives(running)
    os.kill(rank, signal.SIGKILL)
    out, _ = child.communicate(timeout=PATIENCE_S)
    assert out.splitlines()[-1] == "ended -9"
    eventually(lambda: not lives(running))


def test_a_standby_that_does_not_fit_is_not_used(job):
    """The rank starts as usual, and the reason is told."""
    lines = job.run(MORE="1")
    assert "start 1 in" in lines[-2]
    assert "with None ['more'] __main__" in lines[-2]
    why = job.decisions()["the standby was not used"]
    assert why.startswith("local rank 0: it was made for `")
    assert why.endswith("; the rank started as usual")


@pytest.mark.parametrize(
    ("fails", "reason"),
    [
        ("raise KeyError('no data')", "KeyError: 'no data'"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "its process ended with signal 9"),
    ],
)
def test_a_standby_that_cannot_be_prepared_costs_nothing(job, tmp_path, fails, reason):
    """The job goes on, and the reason is told."""
    journals = "pathlib.Path(sys.argv[1]).glob('*.jsonl')"
    end = f"while not any(b'it failed: ' in each.read_bytes() for each in {journals}): time.sleep(0.05)"
    lines = job.run(end, str(tmp_path / "journal"), fails=fails, ALONE="1")
    assert "with None" in lines[-2]
    assert lines[-1] == "ended 0"
    assert job.decisions()["no standby"].startswith(f"local rank 0: preparing it failed: {reason}; see ")


def test_a_rank_that_starts_again_ends_a_standby_that_is_not_ready(job):
    """It waits neither for that nor for a lock that it may hold, and asks for another one."""
    lines = job.run(fails="time.sleep(600)", ALONE="1", AWAITS_ITS_END="1")
    assert "with None" in lines[-2]
    assert lines[-1] == "ended 0"
    why = job.decisions()["no standby"]
    assert why.startswith("local rank 0: the rank started again before it was ready: after ")


def test_a_module_is_run_as_python_runs_it(job, tmp_path, eventually):
    """And nothing of the standbys is left when the job is over."""
    lines = job.run(words=["-m", "train"], PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path[1:]]))
    assert lines[-2].endswith("[] __main__")
    assert "with (('words',)" in lines[-2]
    eventually(lambda: not standbys_of(job.place))
    assert list(job.place.glob(f"{PREFIX}*")) == []


def test_no_standby_outlives_a_launcher_that_is_killed(job, tmp_path, eventually):
    """Those that wait end with it; one that runs the program goes on, as the program would."""
    end = "print('waits', flush=True)\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"
    child = job.start(end, str(tmp_path / "go"))
    lines = []
    while not lines or lines[-1] != "waits":
        lines.append(child.stdout.readline().strip())
    running = process_in(lines[-2])
    eventually(lambda: len(list(job.place.glob(f"{PREFIX}*/0.socket"))) == 1, PATIENCE_S)
    assert len(standbys_of(job.place)) == 4
    child.kill()
    eventually(lambda: len(standbys_of(job.place)) == 2)
    assert lives(running)
    (tmp_path / "go").touch()
    eventually(lambda: not standbys_of(job.place))
    assert list(job.place.glob(f"{PREFIX}*")) == []


def test_one_that_waits_removes_the_directory_of_a_launcher_that_was_killed(job, eventually):
    """There is no other one that could."""
    child = job.start(SPARED="0")
    places = job.place.glob
    eventually(lambda: len(list(places(f"{PREFIX}*/0.socket"))) == 1, PATIENCE_S)
    child.kill()
    eventually(lambda: not list(places(f"{PREFIX}*")))


@pytest.mark.service("torch")
def test_torchrun_starts_its_ranks_again_in_standbys(job, tmp_path, eventually):
    """One of two ranks is killed; both go on in their standbys, and the job succeeds."""
    end = "recorder.close('succeeded')"
    words = ["--nproc-per-node", "2", "--max-restarts", "1", str(tmp_path / "train.py")]
    lines = job.run(end, words=words, agent=TORCHRUN, SPARED="0")
    assert job.status == 0, job.err
    first, again = (sorted(line for line in lines if line.startswith(f"start {n}")) for n in "01")
    assert [len(first), len(again)] == [2, 2]
    assert all("with (('words',)" in line for line in again)
    starts = [event for event in job.events if event.kind == "attempt_start" and event.attempt == 1]
    assert {event.rank for event in starts if event.rank >= 0} == {0, 1}
    deaths = [event for event in job.events if event.kind == "failure" and event.rank == -1]
    assert [(event.of_rank, event.signal) for event in deaths] == [(1, signal.SIGKILL)]
    eventually(lambda: not standbys_of(job.place))


def test_a_directory_that_others_may_enter_is_not_trusted(tmp_path):
    """Whoever listens there may be somebody else."""
    tmp_path.chmod(0o755)
    assert not is_ours(str(tmp_path))
    (tmp_path / "0.socket").touch()
    hand_over({"ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "0"})  # returns
    tmp_path.chmod(0o700)
    assert is_ours(str(tmp_path))
    hand_over({"ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "0"})  # nobody listens


def test_the_directory_of_the_sockets_is_for_one_user(tmp_path):
    class Nobody:
        def decision(self, *_):
            raise AssertionError

        heard = decision

    standbys = Standbys(Nobody(), lambda local_rank: tmp_path / str(local_rank), {})
    assert is_ours(standbys.environment["ETT_STANDBY"])
    standbys.look()
    standbys.close()
    assert not Path(standbys.environment["ETT_STANDBY"]).exists()


def test_what_cannot_be_imported_cannot_be_prepared():
    """A standby is another process: it finds the function by its name."""
    with pytest.raises(ValueError, match="cannot be imported by another process"):
        standby.prepare(lambda: None)


def test_a_program_without_a_recorder_gets_none(tmp_path):
    """Nobody would observe what it does in a standby."""
    program = (
        "import json; from ett_trainer_hooks.pipeline import standby; print(standby.prepare(json.dumps))"
    )
    environ = {**os.environ, "ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"
    assert "no standby: this program makes no Recorder" in ran.stderr


def test_without_a_launcher_nothing_is_asked_for(tmp_path):
    Recorder.from_env({})
    assert not standby.prepare(json.dumps, environ={})
    assert not standby.prepare(json.dumps, environ={"ETT_STANDBY": str(tmp_path)})
    assert standby.prepare(json.dumps, "x", environ={"ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "3"})
    wanted = Wanted.load(tmp_path / "3.wanted")
    assert (wanted.function, wanted.arguments, wanted.argv) == ("json:dumps", ["x"], sys.orig_argv)
    assert (tmp_path / "3.wanted").stat().st_mode & 0o077 == 0
    assert standby.prepared() is None


def test_a_trainer_whose_directory_is_gone_trains_on_without_one(tmp_path, monkeypatch, capsys):
    Recorder.from_env({})
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert not standby.prepare(json.dumps, environ={"ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "0"})
    assert "no standby for local rank 0: [Errno 2] No such file or directory" in capsys.readouterr().err


def test_a_rank_whose_standby_is_gone_at_the_last_moment_starts_as_usual_and_hears_signals():
    program = """
import signal, socket, tempfile, threading
from ett_trainer_hooks.standby.handing_over import hand_over
place, door = tempfile.mkdtemp(), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind(place + "/0.socket")
door.listen()
def answer():
    line, _ = door.accept()
    line.recv(4096)
    line.shutdown(socket.SHUT_RD)
    line.send(b"fits")
threading.Thread(target=answer).start()
hand_over({"ETT_STANDBY": place, "LOCAL_RANK": "0"})
print(signal.getsignal(signal.SIGTERM).name, flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("SIG_DFL\n", 0), ended.stderr
