"""Ranks of a node: followers wait for the leader, and never for one that is gone."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from ett_trainer_hooks.pipeline.bundle import relay
from ett_trainer_hooks.pipeline.bundle.relay import Follower, Leader, is_led, meeting_place

HOLD = """
import sys
from pathlib import Path
from ett_trainer_hooks.pipeline.bundle.relay import Leader
leader = Leader(Path(sys.argv[1]), 0)
leader.begin()
print("leads", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path):
    return tmp_path / "meeting"


def patient(place, wait_s=60.0):
    return Follower(place, wait_s=wait_s, not_compiling_s=60.0)


class Hands:
    """A clock that each pause moves by a second."""

    def __init__(self):
        self.now_s = 0.0

    def clock(self):
        return self.now_s

    def pause(self, _):
        self.now_s += 1.0


def hasty(place, **waits):
    hands = Hands()
    return Follower(place, clock=hands.clock, pause=hands.pause, **waits)


def test_a_follower_waits_until_the_leader_is_through_and_finds_what_it_published(place):
    leader, follower = Leader(place, 4), patient(place)
    waits = []
    thread = threading.Thread(target=lambda: waits.append(follower.wait_for(0)))
    leader.begin()
    thread.start()
    leader.publish(b"archive", {"inductor": ["f1"]})
    assert follower.news() is None
    leader.end()
    thread.join(60)
    assert [wait.why_not for wait in waits] == [""]
    data, state = follower.news()
    assert (data, state.rank, state.keys) == (b"archive", 4, {"inductor": ["f1"]})
    assert follower.news() is None


def test_what_the_leader_is_through_with_is_not_waited_for(place):
    leader = Leader(place, 0)
    for _ in range(2):
        leader.begin()
        leader.end()
    follower = hasty(place, wait_s=5.0)
    assert [follower.wait_for(number) for number in (0, 1)] == [relay.Wait(0.0, "")] * 2


def test_a_leader_that_is_killed_is_not_waited_for(place):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"leads\n"
        assert is_led(place)
        waits = []
        thread = threading.Thread(target=lambda: waits.append(patient(place).wait_for(0)))
        thread.start()
        process.send_signal(signal.SIGKILL)
        thread.join(60)
        assert [wait.why_not for wait in waits] == ["local rank 0 is no more"]
        assert not is_led(place)
    finally:
        process.kill()
        process.communicate()


def test_a_leader_that_takes_too_long_is_given_up(place):
    leader = Leader(place, 0)
    leader.begin()
    wait = hasty(place, wait_s=100.0).wait_for(0)
    assert (wait.waited_s, wait.why_not) == (100.0, "local rank 0 took too long")


def test_a_graph_that_the_leader_does_not_come_to_is_waited_for_shortly(place):
    Leader(place, 0)
    wait = hasty(place, wait_s=100.0).wait_for(0)
    assert (wait.waited_s, wait.why_not) == (10.0, "local rank 0 has not come to this graph")


def test_without_a_leader_the_wait_is_short(place):
    wait = hasty(place, wait_s=100.0).wait_for(0)
    assert (wait.waited_s, wait.why_not) == (10.0, "there is no local rank 0")


def test_a_leader_that_expects_nothing_more_is_not_waited_for(place):
    leader = Leader(place, 0)
    leader.leave()
    wait = hasty(place, wait_s=100.0).wait_for(0)
    assert wait == relay.Wait(0.0, "local rank 0 is through with compiling and has other graphs")


def test_what_was_published_is_there_for_those_who_come_late(place):
    leader = Leader(place, 0)
    leader.begin()
    leader.publish(b"archive", {})
    leader.end()
    leader.close()
    follower = hasty(place, wait_s=5.0)
    assert follower.wait_for(0) == relay.Wait(0.0, "")
    assert follower.news()[0] == b"archive"


def test_a_new_start_at_the_same_place_forgets_the_last(place):
    first = Leader(place, 0)
    first.begin()
    first.publish(b"old", {})
    first.end()
    first.close()
    second = Leader(place, 0)
    assert hasty(place, wait_s=5.0).news() is None
    with pytest.raises(BlockingIOError):
        Leader(place, 0)
    second.close()


def test_a_place_that_others_may_write_to_is_not_used(place):
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        Leader(place, 0)


def test_a_follower_reads_nothing_where_others_may_write(place):
    leader = Leader(place, 0)
    leader.begin()
    leader.publish(b"archive", {})
    leader.end()
    place.chmod(0o777)
    follower = hasty(place, wait_s=5.0)
    assert follower.news() is None
    assert follower.wait_for(0).why_not == "there is no local rank 0"


def test_what_was_changed_behind_the_leaders_back_is_not_loaded(place):
    leader = Leader(place, 0)
    leader.begin()
    leader.publish(b"archive", {})
    leader.end()
    (place / "published.zip").write_bytes(b"something else")
    assert patient(place).news() is None


def test_every_start_of_a_job_has_a_place_of_its_own(tmp_path):
    first = {"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_RESTART_COUNT": "0", "LOCAL_RANK": "0"}
    again = {**first, "TORCHELASTIC_RESTART_COUNT": "1"}
    other_rank = {**first, "LOCAL_RANK": "1", "RANK": "1"}
    assert meeting_place(first, tmp_path) == meeting_place(other_rank, tmp_path)
    assert meeting_place(first, tmp_path) != meeting_place(again, tmp_path)


def test_places_that_were_left_are_taken_away(tmp_path):
    places = [tmp_path / f"{relay.PREFIX}{os.getuid()}-{name}" for name in ("old", "held", "young", "new")]
    holders = [Leader(place, 0) for place in places[:3]]
    for place in places[:2]:
        os.utime(place, (0, 0))
    holders[0].close()
    os.utime(places[0], (0, 0))
    Leader(places[3], 0)
    assert [place.exists() for place in places] == [False, True, True, True]


def test_places_that_cannot_be_looked_at_keep_nobody_from_leading(tmp_path):
    """Another start of this host takes places away at the same moment."""
    (tmp_path / f"{relay.PREFIX}{os.getuid()}-going").symlink_to("gone")
    Leader(tmp_path / f"{relay.PREFIX}{os.getuid()}-new", 0).close()
