"""A stage in a process of its own: its answer, its error, its end."""

import os
import time

import pytest
from work_apart import fail_oddly, own_pid, wait_beside

from ett_trainer_hooks.pipeline.apart import apart
from ett_trainer_hooks.pipeline.stages import Stage, run

PATIENCE_S = 60.0


def stages(function, *given):
    return [Stage("given", lambda _: given[0]), Stage("made", apart(function), needs=("given",))]


def test_the_function_runs_elsewhere_and_its_answer_comes_back(bench):
    """Another process, the same answer."""
    assert run(stages(own_pid, 7), bench().recorder)["made"] != os.getpid()


@pytest.mark.parametrize(
    ("function", "given", "kind", "words"),
    [
        (int, "x", ValueError, "invalid literal"),
        (fail_oddly, 0, RuntimeError, "OddError: no such column"),
        (os._exit, 3, RuntimeError, "the process of a stage ended with 3"),
    ],
)
def test_what_goes_wrong_there_is_raised_here(bench, function, given, kind, words):
    """With its own error, or with what is known of it."""
    with pytest.raises(kind, match=words):
        run(stages(function, given), bench().recorder)


def test_a_cancelled_start_ends_the_process(bench, tmp_path):
    """Nothing is left over."""
    path = tmp_path / "pid"

    def fail(here):
        until = time.monotonic() + PATIENCE_S
        while not (path.exists() and path.read_text()):
            assert time.monotonic() < until
            here.cancelled.wait(0.01)
        raise OSError("no such host")

    with pytest.raises(OSError, match="no such host"):
        run([*stages(wait_beside, str(path)), Stage("fails", fail)], bench().recorder, patience_s=PATIENCE_S)
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)
