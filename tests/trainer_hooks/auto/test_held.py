"""What is held of a program that does not know of it, until it is known to be a rank, or to have gone on."""

from __future__ import annotations

import os

import pytest

from ett_core.events import CheckpointDurable, Decision
from ett_trainer_hooks.auto.held import LIMIT, HeldJournal
from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal


def poured(held, path):
    """A journal in which is written what was held."""
    journal = Journal(path, Identity(job_id="job", writer="w"), clock=Clock())
    held.pour(journal)
    assert journal.close(60.0)
    return journal


def test_what_there_was_no_room_for_is_told_as_lost(tmp_path, events_in):
    """As what a full buffer costs later."""
    held = HeldJournal()
    for _ in range(LIMIT + 7):
        held.put(Decision, 1e9, what="w")
    told = events_in(poured(held, tmp_path / "w-1.jsonl").path)
    assert sum(event.kind == "decision" for event in told) == LIMIT
    assert [event.values for event in told if event.kind == "counters"] == [{"hooks.dropped_events": 7.0}]


def test_what_a_parent_lost_is_not_told_by_its_child(tmp_path):
    """Nor what it held."""
    held = HeldJournal()
    for _ in range(LIMIT + 1):
        held.put(Decision, 1e9, what="w")
    held.forget()
    assert poured(held, tmp_path / "w-1.jsonl").path.exists() is False


def test_a_file_that_the_program_never_closes_ends_with_its_last_use(tmp_path):
    """As without the hooks: its storage has it at once. It is durable once the program goes on."""
    recorder = AutomaticRecorder()
    file = (tmp_path / "state.pt").open("wb")
    descriptor = file.fileno()
    recorder.saved(3, file, size=0)
    with pytest.warns(ResourceWarning):
        del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    recorder.settle()
    assert [kind for kind, _, _ in recorder._held._held] == [CheckpointDurable]


def test_a_file_that_is_still_open_is_no_checkpoint(tmp_path):
    """More may be written to it."""
    recorder = AutomaticRecorder()
    with (tmp_path / "state.pt").open("wb") as file:
        recorder.saved(3, file, size=0)
        recorder.settle()
    assert recorder._held._held == []
