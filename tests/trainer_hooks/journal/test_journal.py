"""The journal against real kills, full disks, slow disks and forks."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import threading
from pathlib import Path

import pytest

from ett_core.accounting import JobFold
from ett_core.events import AttemptStart, Counters, Decision, Failure, Heartbeat, decode
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.journal.parts import Sizes, first_part, last_part, pid_of
from ett_trainer_hooks.journal.segments import acknowledge, journals_in
from ett_trainer_hooks.journal.syncing import Syncer

PATIENCE_S = 60.0
KILLS = 200 if os.environ.get("ETT_FULL") == "1" else 8
WRITER = """
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
for number in recorder.batches(range(10**9)):
    with recorder.checkpoint(number + 1):
        pass
    recorder.durable(number + 1)
    print(number, flush=True)
"""

FORKER = """
import os, sys
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
with recorder.phase("model_init"):
    pid = os.fork()
    if pid == 0:
        for _ in recorder.batches(range(3)):
            recorder.durable(1)
        recorder.close("failed")
        sys.exit(0 if not recorder.active else 1)
    _, status = os.waitpid(pid, 0)
recorder.close("succeeded" if status == 0 else "failed")
"""


def whole_lines(path):
    return path.read_bytes().rpartition(b"\n")[0].splitlines()


class Hanging:
    """A disk that hangs until the test ends that; `over` counts the calls that it has kept for too long."""

    def __init__(self):
        self.over = 0
        self._ended = threading.Event()

    def wait(self):
        if not self._ended.wait(PATIENCE_S):
            self.over += 1

    def end(self):
        self._ended.set()


@pytest.fixture
def hanging():
    disk = Hanging()
    yield disk
    disk.end()


@pytest.fixture
def journal(tmp_path):
    made = []

    def make(path=None, **settings):
        warnings = []
        identity = Identity(job_id="job", writer="w", rank=0)
        path = path or tmp_path / "w-1.jsonl"
        made.append(
            Journal(path, identity, clock=Clock(), guard=Guard(warnings.append), retry_s=0.01, **settings)
        )
        return made[-1], warnings

    yield make
    for each in made:
        each.close(0.1)


@pytest.mark.parametrize("kill", range(KILLS))
def test_whole_lines_survive_sigkill_at_any_moment(start, tmp_path, kill):
    """What was told when a call returned is in the journal, in order, and is accounted for to the second.

    Half of the journals are in parts of 5 kB. The moment is random; `ETT_FULL=1` takes 200 of them.
    """
    child = start(WRITER, ETT_JOURNAL_PART_BYTES="5000" if kill % 2 else "")
    saved = int(child.stdout.readline())
    pause_s = random.Random().uniform(0.0, 0.25)
    threading.Timer(pause_s, child.kill).start()
    for line in child.stdout:
        saved = int(line) if line.endswith(b"\n") else saved
    assert child.wait() == -signal.SIGKILL
    paths = sorted((tmp_path / "journal").glob("*.jsonl"))
    assert {pid_of(path) for path in paths} == {child.pid}
    events = [decode(line) for path in paths for line in whole_lines(path)]
    assert [event.seq for event in events] == list(range(len(events)))
    assert max(event.step for event in events if event.kind == "checkpoint_durable") >= saved + 1
    fold = JobFold("job")
    fold.add(events)
    account = fold.account(events[-1].time + 1000.0)
    assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
    assert account.step >= saved


def test_a_full_disk_costs_events_and_nothing_else(journal):
    """Memory stays bounded, losses are counted, one warning is given for each reason."""
    full, warnings = journal(Path("/dev/full"), limit=100)
    for number in range(1000):
        full.put(Decision, 1e9, urgent=number % 2 == 0, what="w")
    assert full.dropped >= 850
    assert full._queue.qsize() <= 110
    assert not full.close(0.1)
    assert len(warnings) <= 3
    assert sum("No space left" in text for text in warnings) == 1


def test_lines_are_whole_and_in_order_when_the_disk_takes_them_by_pieces(journal, tmp_path):
    """Short writes and errors in between lose nothing and tear nothing."""
    chance = random.Random(7)

    def grudging(descriptor, data):
        if chance.random() < 0.3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data[: chance.randrange(1, 60)])

    slow, _ = journal(write=grudging)
    for number in range(30):
        slow.put(Decision, 1e9 + number, what=f"decision {number}")
    assert slow.flush(30.0)
    events = [decode(line) for line in (tmp_path / "w-1.jsonl").read_bytes().splitlines()]
    assert [event.what for event in events] == [f"decision {number}" for number in range(30)]


def weigh(kind, what=""):
    """A decision (light) or a failure (weighty) that says `what`."""
    return (Failure, {"message": what}) if kind == "failure" else (Decision, {"what": what})


def test_a_journal_goes_on_in_parts_that_read_as_one(journal, tmp_path):
    """Parts sort in the order of writing, end in whole lines, and belong to the same process."""
    parted, _ = journal(tmp_path / "w-77.jsonl", sizes=Sizes(part_bytes=1000, max_bytes=10**6))
    for number in range(100):
        parted.put(Decision, 1e9 + number, urgent=True, what=f"decision {number}")
    assert parted.close()
    paths = journals_in(tmp_path)
    assert len(paths) > 5
    assert [path.name for path in paths[:2]] == ["w-77.jsonl", "w-77.part000001.jsonl"]
    assert {pid_of(path) for path in paths} == {77}
    assert {first_part(path) for path in paths} == {tmp_path / "w-77.jsonl"}
    assert last_part(paths[0]) == paths[-1]
    assert all(1000 <= path.stat().st_size < 1300 for path in paths[:-1])
    events = [decode(line) for path in paths for line in path.read_bytes().splitlines()]
    assert [event.seq for event in events] == list(range(100))


def test_a_journal_never_outgrows_its_bound_and_tells_what_that_cost(journal, tmp_path):
    """The first part stays, weighty lines of removed ones are kept, lost lines are counted and said once."""
    bounded, warnings = journal(sizes=Sizes(part_bytes=4000, max_bytes=16_000))
    for number in range(400):
        kind, fields = weigh("failure" if number % 50 == 49 else "decision", f"number {number}")
        bounded.put(kind, 1e9 + number, urgent=True, **fields)
        assert bounded.flush(30.0)
        assert sum(path.stat().st_size for path in journals_in(tmp_path)) < 16_000 + 1000
    assert bounded.close()
    events = [decode(line) for path in journals_in(tmp_path) for line in path.read_bytes().splitlines()]
    assert events[0].seq == 0
    said = [event.message for event in events if event.kind == "failure"]
    assert sorted(said) == sorted(f"number {number}" for number in range(49, 400, 50))
    missing = max(event.seq for event in events) + 1 - len(events)
    told = [event for event in events if event.kind == "counters"][-1]
    assert told.values["hooks.dropped_events"] == bounded.dropped == missing > 100
    assert [text for text in warnings if "as large as it may grow" in text] == warnings


def test_parts_that_every_exporter_holds_go_first_and_cost_nothing(journal, tmp_path):
    """What is acknowledged is no loss."""
    bounded, warnings = journal(sizes=Sizes(part_bytes=2000, max_bytes=8000))
    for number in range(400):
        bounded.put(Decision, 1e9 + number, urgent=True, what=f"number {number}")
        assert bounded.flush(30.0)
        for path in journals_in(tmp_path)[1:-1]:
            acknowledge(path, "http://exporter", path.stat().st_size)
    assert bounded.close()
    assert (bounded.dropped, warnings) == (0, [])
    assert sum(path.stat().st_size for path in journals_in(tmp_path)) < 8000 + 1000
    left = {path.name for path in tmp_path.iterdir()}
    assert {name.removesuffix(".acked") for name in left} <= left


def test_what_weighs_most_is_brought_to_the_disk_by_another_thread(journal, eventually, hanging):
    """Starts, ends, failures and durable checkpoints; with the name of the file; no write waits for it."""
    synced = []

    def sync(descriptor):
        synced.append((os.fstat(descriptor).st_ino, threading.current_thread().name))
        hanging.wait()

    careful, _ = journal(sync=sync)
    careful.put(Decision, 1e9, urgent=True, what="w")
    assert synced == []
    careful.put(Failure, 1e9, urgent=True, message="m")
    eventually(lambda: synced)
    for _ in range(100):
        careful.put(Failure, 1e9, urgent=True, message="m")
    assert careful.flush(PATIENCE_S)
    assert careful.path.read_bytes().count(b"\n") == 102
    assert (len(synced), hanging.over) == (1, 0)
    hanging.end()
    file, directory = careful.path.stat().st_ino, careful.path.parent.stat().st_ino
    eventually(lambda: len(synced) >= 3)
    assert {inode for inode, _ in synced} == {file, directory}
    assert {name for _, name in synced} == {"ett-sync"}


def test_each_part_reaches_the_disk_with_its_name(journal, tmp_path, eventually):
    """A file whose name is not on the disk is gone with the power, whatever of it is."""
    synced = []

    def sync(descriptor):
        synced.append(os.fstat(descriptor).st_ino)

    parted, _ = journal(sync=sync, sizes=Sizes(part_bytes=1, max_bytes=1 << 20))
    for parts in range(1, 4):
        parted.put(Failure, 1e9, urgent=True, message="m")
        eventually(lambda parts=parts: synced.count(tmp_path.stat().st_ino) == parts)
    assert {path.stat().st_ino for path in journals_in(tmp_path)} == {*synced} - {tmp_path.stat().st_ino}


def test_what_comes_before_what_weighs_most_is_on_the_disk_with_it(journal, tmp_path, eventually):
    """Also where that stands in parts of its own, which hold nothing of weight."""
    synced = set()

    def sync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)

    parted, _ = journal(sync=sync, sizes=Sizes(part_bytes=1, max_bytes=1 << 20))
    for kind, fields in ((Decision, {"what": "w"}), (Decision, {"what": "w"}), (Failure, {"message": "m"})):
        parted.put(kind, 1e9, urgent=True, **fields)
        assert parted.flush(PATIENCE_S)
    parts = journals_in(tmp_path)
    assert len(parts) == 3
    eventually(lambda: synced >= {path.stat().st_ino for path in parts})


def test_a_disk_that_hangs_holds_few_descriptors(tmp_path, eventually, hanging):
    """However often a file is to reach it meanwhile; what came last does in the end, and all are closed."""
    path = tmp_path / "w-1.jsonl"
    sizes = []

    def held():
        return sum(each.exists() and each.samefile(path) for each in Path("/proc/self/fd").iterdir())

    def sync(descriptor):
        sizes.append(os.fstat(descriptor).st_size)
        hanging.wait()

    syncer = Syncer(sync, print)
    with path.open("wb", buffering=0) as file:
        for _ in range(100):
            file.write(b"x")
            syncer.request(file.fileno())
        eventually(lambda: sizes)
        assert held() <= 3
        hanging.end()
        syncer.close(PATIENCE_S)
        assert (sizes[-1], held(), hanging.over) == (100, 1, 0)


def test_a_disk_that_confirms_nothing_is_said_once(journal):
    """The events are with the operating system all the same; a pipe or device has no disk to reach."""

    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    doubtful, warnings = journal(sync=refuse)
    for _ in range(3):
        doubtful.put(Failure, 1e9, urgent=True, message="m")
    assert doubtful.close()
    assert warnings == [f"{doubtful.path}: the disk does not confirm what was written (Input/output error)"]
    silent, nothing = journal(Path("/dev/null"))
    silent.put(Failure, 1e9, urgent=True, message="m")
    assert silent.close()
    assert nothing == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [("limit", 0), ("heartbeat_s", -1.0), ("retry_s", float("nan"))],
)
def test_a_wrong_setting_of_a_journal_is_refused_by_name(tmp_path, setting, value):
    """At construction."""
    with pytest.raises(ValueError, match=setting):
        Journal(tmp_path / "w", Identity(job_id="j", writer="w"), clock=Clock(), **{setting: value})


@pytest.mark.parametrize(
    ("sizes", "named"),
    [({"part_bytes": 0}, "part_bytes"), ({"part_bytes": 100, "max_bytes": 399}, "max_bytes")],
)
def test_sizes_that_cannot_be_kept_are_refused_by_name(sizes, named):
    """A journal has room for its first part, its current one and two between."""
    with pytest.raises(ValueError, match=named):
        Sizes(**sizes)


def test_sizes_come_from_the_environment_and_wrong_ones_are_told_and_left_out():
    """The job goes on with the usual ones."""
    said = []
    part, most = "ETT_JOURNAL_PART_BYTES", "ETT_JOURNAL_MAX_BYTES"
    assert Sizes.from_env({}, said.append) == Sizes()
    assert Sizes.from_env({part: "1000", most: "9000"}, said.append) == Sizes(part_bytes=1000, max_bytes=9000)
    assert Sizes.from_env({most: "9000"}, said.append) == Sizes(part_bytes=2250, max_bytes=9000)
    assert said == []
    for wrong in ({part: "64M"}, {most: "0"}, {part: "-1"}, {part: "10", most: "30"}):
        assert Sizes.from_env(wrong, said.append) == Sizes()
    assert (
        said[0] == f"{part}='64M': that is not a whole number of bytes; the usual sizes of journals are used"
    )
    assert len(said) == 4


def test_bytes_that_are_no_text_lose_no_event(journal):
    """Arguments, paths and labels may hold any byte; what UTF-8 cannot hold becomes a question mark."""
    writing, warnings = journal()
    writing.put(Failure, 1764000000.0, message="cannot run \udcff")
    writing.put(AttemptStart, 1764000000.0, labels={"a\udcfe": "b\udcff"})
    assert writing.close()
    failure, start = map(decode, whole_lines(writing.path))
    assert (failure.message, start.labels, warnings) == ("cannot run ?", {"a?": "b?"}, [])


def test_a_journal_that_somebody_removes_goes_on_in_its_next_part(journal, tmp_path):
    """What is told from then on is there, under a name to which no offset is known; that is said once."""
    writing, warnings = journal(tmp_path / "jobs" / "w-1.jsonl")
    writing.put(Failure, 1764000000.0, message="before")
    assert writing.flush(5.0)
    shutil.rmtree(tmp_path / "jobs")
    for number in range(3):
        writing.put(Failure, 1764000001.0 + number, message="after")
        assert writing.flush(5.0)
    assert journals_in(tmp_path / "jobs") == [last_part(writing.path)] != [writing.path]
    assert [decode(line).seq for line in whole_lines(last_part(writing.path))] == [1, 2, 3]
    assert len(warnings) == 1
    assert "goes on in its next part" in warnings[0]


def test_nobody_waits_for_a_disk_that_hangs(journal, hanging):
    """The first urgent event waits a bounded moment, later ones not at all; all arrive in the end."""

    def write(descriptor, data):
        hanging.wait()
        return os.write(descriptor, data)

    stuck, _ = journal(write=write)
    for _ in range(5000):
        stuck.put(Decision, 1e9, urgent=True, what="w")
    assert hanging.over == 0
    hanging.end()
    assert stuck.flush(PATIENCE_S)
    assert len(stuck.path.read_bytes().splitlines()) == 5000


def test_closing_ends_while_the_disk_hangs(journal, tmp_path, hanging):
    """Whether that takes or confirms nothing; it says whether all is written."""

    def write(_, data):
        hanging.wait()
        return len(data)

    def closed(name, **disk):
        closing, _ = journal(tmp_path / f"{name}-1.jsonl", **disk)
        closing.put(Failure, 1e9, urgent=True, message="m")
        return closing.close(1.0 if disk else PATIENCE_S)

    assert closed("works")
    closed("unconfirmed", sync=lambda _: hanging.wait())
    assert not closed("untaken", write=write)
    assert hanging.over == 0


def test_silence_is_broken_by_a_heartbeat(journal, eventually):
    """A process that has nothing to say still says that it lives."""
    quiet, _ = journal(heartbeat_s=0.02)
    eventually(lambda: quiet.path.exists() and quiet.path.read_bytes().count(b"\n") >= 2)
    assert all(isinstance(decode(line), Heartbeat) for line in quiet.path.read_bytes().splitlines())


def test_what_was_dropped_is_told_at_the_end(journal):
    """The loss stands in the journal itself."""
    lossy, _ = journal()
    lossy.put(Decision, -1.0, what="before time")
    assert lossy.flush(30.0)
    assert lossy.close()
    (event,) = [decode(line) for line in lossy.path.read_bytes().splitlines()]
    assert isinstance(event, Counters)
    assert event.values == {"hooks.dropped_events": 1.0}


def test_a_directory_that_appears_late_is_written_then(journal, tmp_path, eventually):
    """Events wait in memory while the place cannot be made."""
    blocked = tmp_path / "run"
    blocked.write_text("a file where the directory should be")
    late, warnings = journal(blocked / "w-1.jsonl")
    late.put(Decision, 1e9, what="w", urgent=True)
    eventually(lambda: warnings)
    blocked.unlink()
    assert late.flush(30.0)
    assert late.path.exists()


def test_a_forked_child_writes_nothing_under_its_parents_name(start, events_in, tmp_path):
    """In the child the hooks are off; the parent's journal is whole."""
    child = start(FORKER)
    _, errors = child.communicate()
    assert child.returncode == 0, errors
    (path,) = (tmp_path / "journal").iterdir()
    events = events_in(path)
    assert [event.kind for event in events] == ["attempt_start", "phase_begin", "phase_end", "attempt_end"]
    assert [event.seq for event in events] == [0, 1, 2, 3]
    assert events[-1].status == "succeeded"


def test_a_step_of_the_wall_clock_bends_no_duration_and_is_followed():
    """Small differences are left alone, a step moves the anchor."""
    wall_s = [1000.0]
    clock = Clock(wall=lambda: wall_s[0], monotonic=lambda: 10.0)
    wall_s[0] += 0.4
    assert not clock.reanchor()
    assert clock.now() == 1000.0
    wall_s[0] += 3600.0
    assert clock.reanchor()
    assert clock.now() == 4600.4


def test_what_was_written_reaches_the_disk_although_its_directory_is_gone(tmp_path):
    """The directory may be removed between the writing of a file and the request."""
    synced, said = [], []
    syncer = Syncer(synced.append, said.append)
    with (tmp_path / "w-1.jsonl").open("wb") as file:
        syncer.request(file.fileno(), tmp_path / "gone")
    syncer.close(60.0)
    assert (len(synced), said) == (1, [])
