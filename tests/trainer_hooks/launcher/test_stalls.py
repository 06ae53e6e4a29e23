"""The watchdog on clocks that the test moves, with journals as ranks write them."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

import pytest

from ett_core.events import (
    AttemptEnd,
    CheckpointDurable,
    Counters,
    FirstBatch,
    Heartbeat,
    PhaseBegin,
    PhaseEnd,
    Progress,
    StepSeconds,
    encode,
)
from ett_trainer_hooks.journal.parts import part_path
from ett_trainer_hooks.launcher.ranks import RankProcess
from ett_trainer_hooks.launcher.stalls import StallLimits, StallSettings
from ett_trainer_hooks.launcher.stalls.rank_progress import RankProgress
from ett_trainer_hooks.launcher.stalls.watchdog import StallWatch
from ett_trainer_hooks.procfs import Process
from ett_trainer_hooks.recording.facts import BATCHES_SEEN

T0 = 1_764_000_000.0
LIMITS = StallLimits(after_s=300.0, first_batch_s=1800.0, evaluation_s=900.0, checkpoint_s=600.0)


def event(kind, time=0.0, rank=0, **fields):
    return kind(job_id="j", writer=f"w{rank}", seq=0, attempt=0, rank=rank, time=T0 + time, **fields)


def steps(time=0.0, rank=0, step=1, seconds=1.0, wait_s=0.0):
    times = StepSeconds(1, seconds, seconds)
    return event(Progress, time, rank, step=step, steps=1, data_wait_s=wait_s, step_seconds=times)


def process(pid, started=7):
    return Process(pid, 1, pid, pid, "S", started)


@dataclass
class World:
    """A launcher with ranks, all of it at hand."""

    directory: object
    action: str = "dump"
    now_s: float = 100.0
    writable: bool = True
    alive: list = field(default_factory=list)
    told: list = field(default_factory=list)
    moments: list = field(default_factory=list)
    decided: list = field(default_factory=list)
    failures: list = field(default_factory=list)
    signals: list = field(default_factory=list)
    seen: object = None
    processes: list = field(default_factory=lambda: [process(11), process(12)])

    def __post_init__(self):
        self.watch = StallWatch(
            StallSettings(limits=LIMITS, action=self.action),
            alive=lambda: self.alive,
            reporter=self,
            snapshot=lambda pid, rank: self.seen(rank) if self.seen else f"stacks of {pid}",
            journals_written=lambda: self.writable,
            processes=lambda: list(self.processes),
            send=lambda processes, number: self.signals.append(([each.pid for each in processes], number)),
            grace_s=30.0,
            monotonic=lambda: self.now_s,
            wall=lambda: T0 + self.now_s,
        )

    def fact(self, source, text, at=None):
        self.told.append((source, text))
        self.moments.append(at)

    def decision(self, what, why, values):
        self.decided.append((what, why, values))

    def failed(self, message):
        self.failures.append(message)

    def say(self, *events):
        for each in events:
            path = self.directory / f"w{each.rank}-{each.rank + 1}.jsonl"
            if not path.exists():
                self.alive.append(RankProcess(path, each.rank, 0, each.rank + 1, 7))
            with path.open("ab") as file:
                file.write(encode(each) + b"\n")

    def pass_time(self, seconds):
        """Time goes by, with a look every second."""
        for _ in range(int(seconds)):
            self.now_s += 1.0
            self.watch.look()
            if self.watch.stall is not None and self.watch.stall.capture is not None:
                self.watch.stall.capture.join()

    def texts(self, source):
        return [text for its, text in self.told if its == source]


@pytest.fixture
def world(tmp_path):
    return lambda **more: World(tmp_path, **more)


def test_a_loop_that_stands_still_is_told_once_with_what_each_rank_is_doing(world):
    """Who, where, since when, and one stack a rank; then nothing more until it ends."""
    w = world()
    w.say(steps(step=7), steps(rank=1, step=7), event(PhaseBegin, rank=1, phase="evaluation"))
    w.pass_time(10)
    w.say(event(PhaseEnd, rank=1, phase="evaluation"))
    w.pass_time(300)
    assert w.told == []
    w.pass_time(2000)
    (stall,) = w.texts("stall")
    assert stall == "no progress for 301 s on this node: ranks 0-1 in the loop (last report: step 7)"
    assert w.texts("stack") == [
        "rank 0 in the loop (last report: step 7) (pid 1)\nstacks of 1",
        "rank 1 in the loop (last report: step 7) (pid 2)\nstacks of 2",
    ]
    assert w.moments[0] == T0 + 111.0
    assert (w.signals, w.decided, w.failures) == ([], [], [])


def test_a_stall_that_ends_is_told_and_the_next_one_is_a_new_one(world):
    w = world()
    w.say(steps())
    w.pass_time(310)
    w.say(steps(step=2))
    w.pass_time(1)
    assert w.texts("stall")[1:] == ["the stall is over after 310 s: there is progress again"]
    w.pass_time(302)
    assert len(w.texts("stall")) == 3
    w.alive.clear()
    w.pass_time(1)
    assert w.texts("stall")[-1].endswith("its ranks are gone")


def test_one_rank_that_makes_progress_is_enough(world):
    """Rank 1 finished, rank 2 waits, rank 0 steps: no stall."""
    w = world()
    w.say(steps(), steps(rank=1), steps(rank=2), event(AttemptEnd, rank=1, status="succeeded"))
    for step in range(2, 20):
        w.pass_time(60)
        w.say(steps(60.0 * step, step=step))
    assert w.told == []


def test_a_rank_that_has_ended_is_not_waited_for(world):
    w = world()
    w.say(steps(), steps(rank=1), event(AttemptEnd, rank=1, status="succeeded"))
    w.pass_time(302)
    assert w.texts("stall") == [
        "no progress for 301 s on this node: rank 0 in the loop (last report: step 1)"
    ]


@pytest.mark.parametrize(
    ("events", "limit_s"),
    [
        ([event(Heartbeat)], 1800),
        ([event(FirstBatch)], 1800),
        ([event(PhaseBegin, phase="checkpoint")], 1800),
        ([steps()], 300),
        ([steps(), event(PhaseBegin, phase="evaluation")], 900),
        ([steps(), event(PhaseBegin, phase="checkpoint")], 600),
        ([steps(), event(PhaseBegin, phase="evaluation"), event(PhaseBegin, phase="checkpoint")], 600),
        ([steps(), event(PhaseBegin, phase="publish")], 1800),
        ([steps(), event(PhaseBegin, phase="upload", track="side")], 300),
    ],
)
def test_each_place_has_a_limit_of_its_own(world, events, limit_s):
    w = world()
    w.say(*events)
    w.pass_time(limit_s + 1)
    assert w.told == []
    w.pass_time(1)
    assert len(w.texts("stall")) == 1


def test_heartbeats_and_news_from_beside_the_loop_are_no_progress(world):
    """They come from threads that live on while the training hangs."""
    w = world()
    w.say(steps())
    for number in range(40):
        w.pass_time(10)
        w.say(event(Heartbeat), event(CheckpointDurable, step=number, mode="async"),
              event(PhaseBegin, phase="upload", track="side"))  # fmt: skip
    assert len(w.texts("stall")) == 1


def test_batches_of_a_pass_without_steps_are_progress_while_they_become_more(world):
    """Automatic observation knows an evaluation only when it is over."""
    w = world()
    w.say(steps())
    for batches in range(10, 20):
        w.pass_time(60)
        w.say(event(Counters, values={BATCHES_SEEN: float(batches)}))
    assert w.told == []
    for _ in range(6):
        w.pass_time(60)
        w.say(event(Counters, values={BATCHES_SEEN: 19.0, "other": 7.0}))
    assert len(w.texts("stall")) == 1


def test_slow_steps_and_seldom_reports_are_usual_where_they_are_usual():
    """Ten usual steps, three usual times between reports; of other ranks a minute is taken for granted."""
    slow, seldom, fresh = RankProgress(0), RankProgress(3), RankProgress(3)
    slow.take([steps(seconds=50.0, wait_s=10.0)])
    seldom.take([steps(0.0), steps(120.0)])
    fresh.take([steps(0.0)])
    assert slow.limit_s(LIMITS) == 600.0
    assert seldom.limit_s(StallLimits(after_s=20.0)) == 360.0
    assert fresh.limit_s(StallLimits(after_s=20.0)) == 180.0
    assert slow.limit_s(StallLimits(after_s=0.0)) == float("inf")


@pytest.mark.parametrize(
    "off", ["after_s", "first_batch_s", "evaluation_s", "checkpoint_s", "compile_s", "other_s"]
)
def test_zero_switches_a_limit_off(off):
    limits = StallLimits(**{off: 0.0})
    places = {"after_s": [steps()], "first_batch_s": [], "other_s": [steps(), event(PhaseBegin, phase="x")],
              "evaluation_s": [steps(), event(PhaseBegin, phase="evaluation")],
              "compile_s": [steps(), event(PhaseBegin, phase="compile")],
              "checkpoint_s": [steps(), event(PhaseBegin, phase="checkpoint")]}  # fmt: skip
    for place, events in places.items():
        progress = RankProgress(0)
        progress.take(events)
        assert (progress.limit_s(limits) == float("inf")) == (place == off)


def test_a_launcher_that_stood_still_itself_counts_none_of_it(world):
    """Stopped for an hour, or on a machine that slept: it looks first."""
    w = world()
    w.say(steps())
    w.pass_time(1)
    w.now_s += 3600.0
    w.pass_time(250)
    assert w.told == []


def test_lines_that_come_late_are_progress_when_they_come(world):
    """A disk that hung for four minutes and then gave everything."""
    w = world()
    w.say(steps())
    w.pass_time(240)
    w.say(steps(60.0, step=2), steps(120.0, step=3))
    w.pass_time(290)
    assert w.told == []


def test_nothing_is_judged_while_no_journal_can_be_written(world):
    """A full or hanging disk silences the ranks; the silence counts from when it can be written again."""
    w = world(writable=False)
    w.say(steps())
    w.pass_time(1000)
    assert w.told == []
    w.writable = True
    w.pass_time(302)
    assert len(w.texts("stall")) == 1


def test_a_torn_or_strange_line_hides_nothing(world):
    w = world()
    w.say(steps())
    (path,) = [process.journal for process in w.alive]
    with path.open("ab") as file:
        file.write(b"nonsense\n" + encode(steps(step=9))[:30])
    w.pass_time(1)
    with path.open("ab") as file:
        file.write(encode(steps(step=9))[30:] + b"\n")
    w.pass_time(302)
    assert "step 9" in w.texts("stall")[0]


def test_a_journal_that_goes_on_in_parts_is_followed_through_them(world):
    """Also over parts that were removed meanwhile, for want of room."""
    w = world()
    w.say(steps())
    first = w.alive[0].journal
    with first.open("ab") as file:
        file.write(encode(steps(step=2)) + b"\n")
    part_path(first, 1).write_bytes(encode(steps(step=3)) + b"\n")
    w.pass_time(200)
    part_path(first, 2).write_bytes(encode(steps(step=4)) + b"\n")
    w.pass_time(200)
    part_path(first, 9).write_bytes(encode(steps(step=12)) + b"\n")
    w.pass_time(400)
    assert w.told == []
    w.pass_time(4)
    assert "last report: step 12" in w.texts("stall")[0]


def test_told_to_do_nothing_it_only_tells(world):
    w = world(action="none")
    w.say(steps())
    w.pass_time(400)
    assert [source for source, _ in w.told] == ["stall"]


def test_told_to_kill_it_records_first_then_asks_then_ends(world):
    """SIGTERM after the stacks, SIGKILL after the grace time, and the failure says why."""
    w = world(action="kill")
    w.say(steps())
    w.pass_time(303)
    assert w.failures == ["stalled: no progress for 302 s; ended by the launcher"]
    assert w.signals == [([11, 12], signal.SIGTERM)]
    w.say(event(AttemptEnd, status="failed"))
    w.processes.remove(process(11))
    w.pass_time(29)
    assert len(w.signals) == 1
    w.pass_time(100)
    assert w.signals[1:] == [([12], signal.SIGKILL)]
    assert [source for source, _ in w.told] == ["stall", "stack"]
    assert w.decided == [
        ("end the stalled command", "no rank made progress and the stall action is kill", {"quiet_s": 302.0}),
        ("kill the stalled command", "it did not end when asked to", {}),
    ]


def test_what_is_started_after_the_end_of_a_stalled_command_is_left_alone(world):
    """Also a process that got the pid of one that was asked to end."""
    w = world(action="kill")
    w.say(steps())
    w.pass_time(303)
    w.processes[:] = [process(11, started=8), process(13)]
    w.alive.clear()
    w.say(steps(rank=5))
    w.pass_time(100)
    assert w.signals == [([11, 12], signal.SIGTERM)]
    assert w.watch.stall is None
    w.pass_time(300)
    assert w.signals[1] == ([11, 13], signal.SIGTERM)


def test_a_rank_that_cannot_be_looked_into_hides_no_other(world):
    def seen(rank):
        if rank == 0:
            raise OSError("no such process")
        return "stacks"

    w = world(seen=seen)
    w.say(steps(), steps(rank=1), event(PhaseBegin, rank=1, phase="x"), event(PhaseEnd, rank=1, phase="x"))
    w.say(steps(0.1, rank=1))
    w.pass_time(400)
    assert [text.splitlines()[1] for text in w.texts("stack")] == [
        "nothing could be seen (OSError: no such process)",
        "stacks",
    ]


def test_a_job_that_stalls_again_and_again_leaves_room_for_other_evidence(world):
    """Three times with stacks, twenty times in all."""
    w = world()
    for step in range(30):
        w.say(steps(step=step))
        w.pass_time(303)
    assert len(w.texts("stack")) == 3
    assert len(w.texts("stall")) == 2 * 20
    assert w.texts("stall")[-2].endswith("(further stalls are not told)")


def test_without_ranks_nothing_is_said(world):
    w = world()
    w.pass_time(5000)
    assert w.told == []


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(StallLimits, {"after_s": -1.0}), (StallLimits, {"first_batch_s": float("nan")}),
     (StallSettings, {"action": "shoot"})],
)  # fmt: skip
def test_a_wrong_setting_is_refused_by_name(kind, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kind(**wrong)
