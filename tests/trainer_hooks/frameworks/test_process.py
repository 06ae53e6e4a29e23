"""What the callbacks of one process share, in real processes: one recorder, and a true end."""

from __future__ import annotations

import pytest

from ett_trainer_hooks.adapters.seams import Seams

TRAINED = """
import multiprocessing, os, sys
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters.process import THIS_PROCESS

def train(status="succeeded", rank=0, world_size=1):
    recorder = THIS_PROCESS.recorder(rank, world_size)
    THIS_PROCESS.training()
    THIS_PROCESS.stages.turn_to("data_warmup")
    THIS_PROCESS.stages.leave_all()
    recorder.first_batch()
    recorder.step_done()
    THIS_PROCESS.stages.turn_to("shutdown")
    THIS_PROCESS.ended(status)
    return recorder

if __name__ == "__main__":
"""


@pytest.fixture
def ends(start, events_in, tmp_path):
    """Runs a program to its end; its status, and its events."""

    def run(*lines: str, **environ: str):
        child = start(TRAINED + "".join(f"    {line}\n" for line in lines), **environ)
        _, err = child.communicate(timeout=60.0)
        assert b"ettwatch:" not in err
        return child.returncode, events_in(tmp_path / "journal")

    return run


@pytest.mark.parametrize(
    ("lines", "status", "end"),
    [
        (["train()"], 0, "succeeded"),
        (["train()", "sys.exit(0)"], 0, "succeeded"),
        (["train()", "sys.exit(3)"], 3, "failed"),
        (["train()", "raise ValueError('after training')"], 1, "failed"),
        (["train('cancelled')", "sys.exit(1)"], 1, "cancelled"),
        (["train()", "train()"], 0, "succeeded"),
    ],
)
def test_the_end_is_a_success_only_where_the_process_has_one(ends, lines, status, end):
    """A trainer that ended well is not the last word: the status of the process is."""
    returned, events = ends(*lines)
    assert returned == status
    assert [event.status for event in events if event.kind == "attempt_end"] == [end]
    assert len({event.writer for event in events}) == 1


def test_work_that_is_still_going_on_has_no_end_to_tell(ends):
    """As where a trainer raised and nobody said how it ended."""
    returned, events = ends("train()", "THIS_PROCESS.training()", "os._exit")
    assert returned == 0
    assert [event for event in events if event.kind == "attempt_end"] == []


def test_a_program_with_a_recorder_and_a_callback_has_one_writer(ends):
    """Also where it does not hand its recorder over."""
    _, events = ends("recorder = Recorder.from_env()", "assert train() is recorder")
    assert len({event.writer for event in events}) == 1


def test_the_framework_knows_the_rank_better_than_the_environment(ends):
    """Frameworks that start ranks themselves set no variable for it."""
    _, events = ends("train(rank=3, world_size=4)")
    assert {event.rank for event in events} == {3}
    assert events[0].world_size == 4


def test_a_process_that_was_spawned_to_train_tells_its_end_itself(ends):
    """Such a process runs nothing at its exit; the one that spawned it is no rank."""
    returned, events = ends(
        "work = multiprocessing.get_context('spawn').Process(target=train, args=('succeeded', 1, 2))",
        "work.start()",
        "work.join()",
        "sys.exit(work.exitcode)",
    )
    assert returned == 0
    assert {event.rank for event in events} == {1}
    assert [event.status for event in events if event.kind == "attempt_end"] == ["succeeded"]


def test_a_seam_that_somebody_else_has_wrapped_meanwhile_is_left_to_them():
    """Theirs calls ours and stays; a class gets its own function back."""

    class Saver:
        def save(self):
            return ["saved"]

    seams, saver = Seams(), Saver()
    seams.around(saver, "save", lambda save: lambda: [*save(), "ours"])
    seams.around(Saver, "save", lambda save: lambda self: [*save(self), "class"])
    seams.around(saver, "no_such_method", lambda _: None)
    ours = saver.save
    saver.save = lambda: [*ours(), "theirs"]
    seams.restore()
    assert saver.save() == ["saved", "ours", "theirs"]
    assert Saver().save() == ["saved"]


@pytest.mark.parametrize(
    ("module", "absent", "word"),
    [
        ("lightning", ["lightning", "pytorch_lightning"], "pip install lightning"),
        ("huggingface", ["transformers"], "pip install transformers"),
    ],
)
def test_a_framework_that_is_not_installed_is_named(start, module, absent, word):
    """The hooks work without it; asking for its callback says what to install."""
    child = start(
        f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
        "import ett_trainer_hooks.adapters\nprint('here', flush=True)\n"
        f"import ett_trainer_hooks.adapters.{module}"
    )
    out, err = child.communicate(timeout=60.0)
    assert out == b"here\n"
    assert err.decode().splitlines()[-1].startswith("ImportError: ETTCallback for")
    assert word in err.decode()
