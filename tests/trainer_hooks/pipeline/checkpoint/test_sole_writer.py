"""Who writes to a directory of checkpoints: one start at a time, and the other one learns what to do."""

import os
import re
import signal
import subprocess
import sys
import traceback

import msgspec
import pytest

from ett_core.failures import Where, judge, scan
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import (
    FOLDER,
    OccupiedError,
    claim,
    this_start,
    writer_elsewhere,
    writer_here,
)
from ett_trainer_hooks.pipeline.takes import LEASE_S, LOOK_EVERY_S, SEEN_WITHIN_S, Holder, LostError, Start

CLAIMS = """
import os, pathlib, sys
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import claim
from ett_trainer_hooks.pipeline.takes import Start
recorder = Recorder.from_env({"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": sys.argv[1]})
lease = claim(pathlib.Path(sys.argv[1]), recorder, start=Start(0, 0))
print("claimed", flush=True)
sys.stdin.read()
"""


class Patience:
    """A clock that goes on only in pauses, in which something may happen."""

    def __init__(self, meanwhile=lambda: None):
        self.now_s, self._meanwhile = 0.0, meanwhile
        self.said = []

    def clock(self):
        return self.now_s

    def pause(self, seconds):
        self.now_s += seconds
        self._meanwhile()


@pytest.fixture
def other(tmp_path):
    """Another process that writes there."""
    child = subprocess.Popen(
        [sys.executable, "-c", CLAIMS, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "claimed\n"
    yield child
    child.kill()
    child.communicate()


def claimed(directory, told, patience, **how):
    world = {"pause": patience.pause, "clock": patience.clock, "say": patience.said.append}
    return claim(directory, told.recorder, **world, **how)


def from_elsewhere(directory, seconds=0.0, *, job_id="dlrm", start=None):
    """A writer on another machine that has renewed its lease so many seconds ago."""
    folder = directory / FOLDER
    folder.mkdir(parents=True)
    holder = Holder(job_id=job_id, node="n7", boot="another kernel", pid=17, taken_at=0.0, start=start)
    path = folder / "take-1.json"
    path.write_bytes(msgspec.json.encode(holder))
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)
    return path


def test_a_second_start_waits_and_is_refused_with_what_to_do(other, tmp_path, bench):
    told, patience = bench(), Patience()
    with pytest.raises(OccupiedError) as refused:
        claimed(tmp_path, told, patience)
    text = str(refused.value)
    assert text.startswith(f"another start writes to {tmp_path}: process {other.pid} on ")
    assert "of job job, attempt 0, since " in text
    assert f"(pstree -sp {other.pid}, there)" in text
    [decision] = told.of("decision")
    assert decision.what == "this start waits for the one that writes its checkpoints"
    who = re.escape(text.partition(": ")[2].partition(". End it")[0])
    until = rf", in {re.escape(str(tmp_path))}; it waits until \d\d:\d\d:\d\d, then gives up"
    assert re.fullmatch(who + until, decision.why)
    assert patience.said == [f"{decision.what}: {decision.why}"]
    assert writer_here(tmp_path).pid == other.pid


def test_on_the_same_machine_a_later_start_waits_for_the_earlier_one(other, tmp_path, bench):
    """It is known to live, and has the processors and the memory that the later one needs."""
    with pytest.raises(OccupiedError, match=f"process {other.pid} on "):
        claimed(tmp_path, bench(), Patience(), start=Start(1000, 1000))


def test_a_writer_that_was_killed_leaves_nothing_behind(other, tmp_path, bench):
    def kill():
        other.send_signal(signal.SIGKILL)
        other.wait()

    patience = Patience(kill)
    claimed(tmp_path, bench(), patience).release()
    assert writer_here(tmp_path) is None
    assert patience.said[1:] == [f"{tmp_path} is free after a wait of 0 s"]


def test_one_after_the_other_writes_and_old_leases_go(tmp_path, bench):
    told = bench()
    assert writer_here(tmp_path) is None
    for number in range(1, 6):
        lease = claimed(tmp_path, told, Patience())
        assert (lease.number, writer_here(tmp_path).pid) == (number, os.getpid())
        lease.release()
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["take-4.json", "take-5.json"]
    assert told.of("decision") == []


def test_a_writer_elsewhere_is_waited_for_until_its_lease_has_run_out(tmp_path, bench):
    path = from_elsewhere(tmp_path)
    assert writer_here(tmp_path) is None  # another machine's is not ours to judge

    def age():
        os.utime(path, (path.stat().st_mtime - LEASE_S / 4,) * 2)

    patience = Patience(age)
    claimed(tmp_path, bench(), patience).release()
    assert patience.now_s > 0


def test_a_writer_elsewhere_that_lives_refuses_us(tmp_path, bench):
    path = from_elsewhere(tmp_path)
    with pytest.raises(OccupiedError, match="process 17 on n7, of job dlrm"):
        claimed(tmp_path, bench(), Patience(lambda: os.utime(path)))


def test_who_stood_still_for_too_long_learns_that_others_write_now(tmp_path, bench):
    """However many of them there were since."""
    lease = claimed(tmp_path, bench(), Patience())
    lease.check()
    others = []
    for number in range(1, 5):
        os.utime(tmp_path / FOLDER / f"take-{number}.json", takes.LET_GO)
        others.append(claimed(tmp_path, bench(), Patience()))
        with pytest.raises(LostError, match="another process has taken over"):
            lease.check()
    for each in (lease, *others):
        each.release()


@pytest.mark.usefixtures("other")
def test_that_the_job_was_started_twice_is_found_to_be_the_cause(tmp_path, bench):
    """Of the start that was refused, and of one that was overtaken; the other ranks lost their partner."""

    def cause_of(caught):
        raised = "".join(traceback.format_exception(caught.type, caught.value, caught.tb))
        victim = "[rank1]: RuntimeError: Connection closed by peer [127.0.0.1]:4711"
        return judge(scan(f"{raised}\n{victim}".encode(), Where(source="stderr"))).failure_class

    with pytest.raises(OccupiedError) as refused:
        claimed(tmp_path, bench(), Patience())
    assert cause_of(refused) == "concurrent_start"
    lease = claimed(tmp_path / "elsewhere", bench(), Patience())
    os.utime(tmp_path / "elsewhere" / FOLDER / "take-1.json", takes.LET_GO)
    later = claimed(tmp_path / "elsewhere", bench(), Patience())
    with pytest.raises(LostError) as lost:
        lease.check()
    assert cause_of(lost) == "concurrent_start"
    for each in (lease, later):
        each.release()


def test_a_later_start_on_another_machine_does_not_wait_for_the_earlier_one(tmp_path, bench):
    """Its launcher has given up on that, whose lease has most of its time to run."""
    from_elsewhere(tmp_path, job_id="job", start=Start(0, 1))
    told, patience = bench(), Patience()
    claimed(tmp_path, told, patience, start=Start(1000, 1000)).release()
    assert patience.now_s == 0
    [decision] = told.of("decision")
    assert decision.what == "this start takes over from an earlier one that may still write checkpoints"
    assert decision.why.startswith("process 17 on n7, of job job, attempt 1, since 1970-")
    assert decision.why.endswith("; this is attempt 1000, what that process saves is not published")
    assert patience.said == [f"{decision.what}: {decision.why}"]


def test_where_nobody_numbers_the_starts_a_writer_elsewhere_is_watched_for_a_while(tmp_path, bench):
    """One that lives renews its lease in this time, and one that stood still can publish nothing more."""
    path = from_elsewhere(tmp_path, job_id="job", start=Start(0, 0))

    def age():
        os.utime(path, (path.stat().st_mtime - LOOK_EVERY_S,) * 2)

    patience = Patience(age)
    claimed(tmp_path, bench(), patience, start=Start(0, 0)).release()
    assert SEEN_WITHIN_S - 1 <= patience.now_s <= SEEN_WITHIN_S + 1


@pytest.mark.parametrize("lets_go", [False, True])
def test_who_was_overtaken_does_not_come_back_by_a_restart_of_its_ranks(lets_go, tmp_path, bench):
    """Nobody numbers the starts, so its number goes up; after a forerunner that has ended, nobody waits."""
    earlier = claimed(tmp_path, bench(), Patience(), start=Start(0, 0))
    if lets_go:
        earlier.release()
    there = tmp_path / "there"
    path = from_elsewhere(there, job_id="job", start=Start(0, 0)).rename(tmp_path / FOLDER / "take-2.json")
    if not lets_go:
        with pytest.raises(LostError, match="process 17 on n7"):
            earlier.check()
        earlier.release()
    patience = Patience(lambda: os.utime(path))
    if lets_go:
        claimed(tmp_path, bench(), patience, start=Start(0, 1)).release()
        assert patience.now_s == 0
    else:
        with pytest.raises(OccupiedError, match="process 17 on n7"):
            claimed(tmp_path, bench(), patience, start=Start(0, 1))


@pytest.mark.parametrize(
    ("holder", "start"),
    [
        ({"start": Start(1000, 1000)}, Start(1000, 1000)),
        ({"start": Start(1000, 1000)}, Start(0, 3)),
        ({"start": Start(7, 9)}, Start(7, 8)),
        ({"start": Start(8, 8)}, Start(7, 9)),
        ({"start": None}, Start(1000, 1000)),
        ({"start": Start(0, 0)}, None),
        ({"start": Start(0, 0), "job_id": "another"}, Start(1000, 1000)),
    ],
)
def test_whoever_is_no_later_start_of_the_job_waits(holder, start, tmp_path, bench):
    """Nor does one take over that cannot be kept from publishing, or from one that cannot be."""
    path = from_elsewhere(tmp_path, **{"job_id": "job", **holder})
    with pytest.raises(OccupiedError, match="process 17 on n7"):
        claimed(tmp_path, bench(), Patience(lambda: os.utime(path)), start=start)


def test_which_start_of_its_job_a_process_belongs_to(bench):
    recorder = bench().recorder
    assert this_start(recorder, {"SLURM_RESTART_COUNT": "2"}) == Start(2000, 0)
    assert this_start(recorder, {}) == Start(0, 0)
    assert this_start(recorder, {"ETT_ATTEMPT": "x"}) is None
    assert this_start(Recorder.from_env({}), {}) is None


def test_a_writer_elsewhere_is_seen_to_live_or_not(tmp_path):
    path = from_elsewhere(tmp_path)

    def seen(meanwhile):
        patience = Patience(meanwhile)
        world = {"pause": patience.pause, "clock": patience.clock, "say": patience.said.append}
        return writer_elsewhere(tmp_path, **world), patience

    living, patience = seen(lambda: os.utime(path))
    assert living.pid == 17
    assert patience.said[0].endswith(f"was writing to {tmp_path}: up to 15 s to see whether it still does")
    silent, patience = seen(lambda: None)
    assert silent is None
    assert patience.now_s == SEEN_WITHIN_S
    assert seen(lambda: os.utime(path, takes.LET_GO))[0] is None
    assert seen(lambda: pytest.fail("its lease has run out"))[0] is None
    assert writer_elsewhere(tmp_path / "nowhere") is None
