"""Ranks whose processes stand stopped, on a clock that the test moves."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ett_core.evidence_log import EvidenceLine
from ett_core.stopped_ranks import stops_in
from ett_trainer_hooks.launcher.ranks import RankProcess
from ett_trainer_hooks.launcher.stalls.stopped import StoppedWatch
from ett_trainer_hooks.procfs import process_of

T0 = 1_764_000_000.0
LOOK_S = 0.25


class World:
    """Two ranks, of which the test says in which state they are."""

    def __init__(self):
        self.now_s = 50.0
        self.alive = [RankProcess(Path(f"w{rank}"), rank, 0, 70 + rank, 7) for rank in range(2)]
        self.states = {70: "S", 71: "S"}
        self.told = []
        self.watch = StoppedWatch(
            lambda: self.alive,
            lambda source, text, at: self.told.append((source, text, at)),
            monotonic=lambda: self.now_s,
            wall=lambda: T0 + self.now_s,
            state=lambda pid: self.states[pid],
        )

    def pass_time(self, seconds, state="S"):
        self.states[71] = state
        for _ in range(int(seconds / LOOK_S)):
            self.now_s += LOOK_S
            self.watch.look()

    def stops(self):
        lines = [
            EvidenceLine(T0 + self.now_s if at is None else at, -1, "l", seq, "n", source, text)
            for seq, (source, text, at) in enumerate(self.told)
        ]
        return stops_in(lines)


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("state", ["T", "t"])
def test_a_rank_that_is_stopped_is_told_once_and_again_when_it_runs(world, state):
    world.pass_time(10)
    world.pass_time(20, state)
    ((source, text, since),) = world.told
    assert (source, since) == ("stopped", T0 + 60.25)
    assert text.startswith("rank 1 (pid 71) was stopped for 2.0 of the last 2.0 s: ")
    (stop,) = world.stops()
    assert (stop.rank, stop.since, stop.is_held) == (1, T0 + 60.25, True)
    world.pass_time(31)
    assert world.told[1][1] == "rank 1 (pid 71) runs again: it was stopped for 19.8 of 19.8 s"
    assert [stop.is_held for stop in world.stops()] == [False]


def test_one_that_is_stopped_now_and_then_is_told_with_its_share(world):
    """Half of the time it stands: what the others do takes twice as long."""
    for _ in range(10):
        world.pass_time(1, "T")
        world.pass_time(1)
    world.pass_time(31)
    begun, over = (text for _, text, _ in world.told)
    assert begun.startswith("rank 1 (pid 71) was stopped for 2.0 of the last 4.0 s: ")
    assert over.startswith("rank 1 (pid 71) runs again: it was stopped for 9.8 of ")
    (stop,) = world.stops()
    assert stop.ratio == pytest.approx(2.0, rel=0.1)


def test_a_short_stop_names_nobody(world):
    """A debugger that looks in for a moment, now and then in an hour."""
    for _ in range(20):
        world.pass_time(1, "t")
        world.pass_time(60)
    assert world.told == []


def test_what_passes_while_the_launcher_stands_still_is_nobody_s(world):
    world.pass_time(0.25, "T")
    world.now_s += 3600.0
    world.pass_time(0.25, "T")
    assert world.told == []


def test_a_rank_that_ends_while_it_is_stopped_was_held_to_the_end(world):
    world.pass_time(5, "T")
    world.alive.pop()
    world.pass_time(1)
    assert world.told[-1][1].startswith("rank 1 (pid 71) is gone: it was stopped for ")
    assert [(stop.rank, stop.is_held) for stop in world.stops()] == [(1, True)]


def test_the_kernel_tells_it_of_a_real_process():
    """The state that is read by default."""
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            child.send_signal(signal.SIGSTOP)
            os.waitpid(child.pid, os.WUNTRACED)
            assert process_of(child.pid).state == "T"
        finally:
            child.kill()
