"""A standby that is not ready holds nobody up, and it is told that it takes long."""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import closing

import pytest

from ett_trainer_hooks import Recorder, procfs
from ett_trainer_hooks.launcher.standbys import Standbys
from ett_trainer_hooks.pipeline import standby
from ett_trainer_hooks.standby.handing_over import hand_over
from ett_trainer_hooks.standby.wanted import Wanted

PATIENCE_S = 300.0
SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


def test_of_a_standby_that_takes_long_it_is_told_how_long_and_why(tmp_path, eventually):
    """Once; and how many seconds a ready one took."""
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\n"
        "def up(place):\n"
        "    pathlib.Path(place, 'begun').touch()\n"
        "    while not pathlib.Path(place, 'go').exists(): time.sleep(0.01)"
    )
    told, now = [], [1000.0]

    class Reporter:
        def decision(self, what, why, values):
            told.append((what, why, values))

        def heard(self, statuses):
            raise AssertionError(statuses)

    standbys = Standbys(Reporter(), lambda local_rank: tmp_path / f"{local_rank}.log", {}, lambda: now[0])
    wanted = Wanted(
        function="slow:up",
        arguments=[str(tmp_path)],
        argv=["python", str(tmp_path / "train.py")],
        executable=sys.executable,
        cwd=str(tmp_path),
        environ={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path[1:]])},
    )
    with closing(standbys):
        wanted.save(standbys.place / "2.wanted")
        standbys.look()
        eventually((tmp_path / "begun").exists, PATIENCE_S)
        now[0] += 119.0
        standbys.look()
        assert told == []
        now[0] += 10_000.0
        standbys.look()
        standbys.look()
        ((what, why, values),) = told
        assert what == "a standby is not ready yet"
        assert why.startswith("local rank 2: after 10119 s it has had ")
        log = tmp_path / "2.log"
        assert why.endswith(f"; it waits for something else, such as data or a lock; see {log}")
        assert (values["local_rank"], values["seconds"]) == (2, 10_119.0)
        assert 0.0 < values["processor_s"] < 10_119.0
        assert 0.0 <= values["queued_s"] < 10_119.0
        (tmp_path / "go").touch()
        eventually(lambda: standbys.look() or len(told) > 1, PATIENCE_S)
        assert told[1][0] == "a standby is ready"
        assert told[1][1].endswith(", made in 10119 s")


def test_what_a_rank_starts_is_no_rank_that_starts_again(tmp_path, monkeypatch):
    """It neither asks for the standby nor ends it."""
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o700)
    environ = {"ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "0"}
    again, wanted = dict(environ), tmp_path / "0.wanted"
    Recorder.from_env({})
    assert standby.prepare(json.dumps, "x", environ=environ)
    hand_over(environ)
    assert wanted.exists()
    with monkeypatch.context() as another:
        another.setattr(sys, "orig_argv", ["python", "another.py"])
        hand_over(again)
    assert wanted.exists()
    hand_over(again)
    assert not wanted.exists()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind("0.socket")
        door.listen()
        door.settimeout(0)
        hand_over(environ)
        with pytest.raises(BlockingIOError):
            door.accept()


def test_a_process_that_others_leave_no_processor_is_seen_to_wait_for_one(start, tmp_path, eventually):
    """Of one that is not there the kernel tells nothing."""
    processor = str(min(os.sched_getaffinity(0)))
    rivals = [start(SPIN, processor) for _ in range(2)]
    eventually(lambda: procfs.queued_s(rivals[0].pid) > 0.2)
    assert procfs.queued_s(rivals[0].pid, tmp_path) is None
