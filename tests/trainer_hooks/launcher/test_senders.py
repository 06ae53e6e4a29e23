"""A launcher that knows who sent a signal says so, of ranks that say nothing of it themselves."""

from __future__ import annotations

import os
import signal

import pytest

from ett_core.causes import cause_of_event
from ett_core.details import JobDetails
from ett_trainer_hooks.launcher.senders import Senders

WAITS = """
import signal, sys, threading
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
recorder.first_batch()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
print("ready", flush=True)
threading.Event().wait(60)
"""

ONE_FAILS = """
import os, pathlib, signal, sys, threading
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
recorder.first_batch()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
place = pathlib.Path(sys.argv[1])
(place / os.environ["RANK"]).touch()
while len(list(place.iterdir())) < 2:
    threading.Event().wait(0.05)
threading.Event().wait(0.5 if os.environ["RANK"] == "0" else 60)
sys.exit(3)
"""


def causes(events, signal_number):
    return [
        cause_of_event(event)
        for event in events
        if event.kind == "failure" and event.rank == -1 and event.signal == signal_number
    ]


def test_a_stop_that_was_passed_on_names_who_sent_it(ett_run, events_in, tmp_path):
    """The rank ends by the signal that the launcher got, whose sender the kernel names."""
    child = ett_run(WAITS)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60.0)
    (cause,) = causes(events_in(tmp_path / "journal"), signal.SIGTERM)
    begin = f"rank 0 was stopped by SIGTERM (sent by the launcher, which got it from process {os.getpid()} ("
    assert cause.startswith(begin)


def test_a_signal_from_elsewhere_has_no_known_sender(ett_run, events_in, tmp_path):
    """What goes past the launcher it cannot know of."""
    child = ett_run("import os; print(os.getpid(), flush=True)\n" + WAITS)
    pid = int(child.stdout.readline())
    assert child.stdout.readline() == "ready\n"
    os.kill(pid, signal.SIGKILL)
    child.communicate(timeout=60.0)
    cause = causes(events_in(tmp_path / "journal"), signal.SIGKILL)[0]
    assert cause == "rank 0 was killed by SIGKILL (sender unknown)"


@pytest.fixture
def one_fails(ett_run, events_in, tmp_path):
    """The events of a job of two ranks under torchrun, of which it stops one as the other has failed."""

    def run(worker_text):
        worker = tmp_path / "worker.py"
        worker.write_text(worker_text)
        ready = tmp_path / "ready"
        ready.mkdir()
        torchrun = (
            "from torch.distributed.run import main; import sys; "
            f"sys.argv = ['torchrun', '--nproc-per-node', '2', {str(worker)!r}, {str(ready)!r}]; "
            "main()"
        )
        ett_run(torchrun).communicate(timeout=120.0)
        return events_in(tmp_path / "journal")

    return run


@pytest.mark.service("torch")
def test_ranks_that_torchrun_stops_because_of_another_are_told_so(one_fails):
    """Torchrun's log says to which processes it sends what."""
    found = causes(one_fails(ONE_FAILS), signal.SIGTERM)
    assert found == ["rank 1 was stopped by SIGTERM (sent by torchrun)"]


@pytest.mark.service("torch")
def test_a_rank_that_tells_of_its_signal_itself_gets_the_sender_from_the_launcher(one_fails):
    """Its recorder hears SIGTERM and cannot know from whom."""
    events = one_fails(ONE_FAILS.replace("signal.signal(signal.SIGTERM, signal.SIG_DFL)", ""))
    details = JobDetails()
    details.add(events)
    told = [line.text for line in details.evidence.lines(0) if line.rank == 1 and line.source == "failure"]
    assert told == ["rank 1 was stopped by SIGTERM (sent by torchrun)\nreceived SIGTERM"]


def test_only_the_process_and_the_signal_that_were_named_have_a_sender():
    """Another signal, or another process, is not taken for it; a new start forgets."""
    senders = Senders()
    senders.heard(
        [
            "W1129 api.py:897] Sending process 11 closing signal SIGTERM",
            "Unable to shutdown process 12 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
            "Sending process x closing signal SIGTERM",
        ]
    )
    senders.sent(2, "somebody")
    assert (senders.of(15, 11), senders.of(9, 12), senders.of(2, 7)) == ("torchrun", "torchrun", "somebody")
    assert not any((senders.of(9, 11), senders.of(15, 12), senders.of(None, 11)))
    senders.clear()
    assert senders.of(15, 11) == senders.of(2, 7) == ""
