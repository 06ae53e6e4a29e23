"""Parts of the pipeline that a launcher gives to any program: variables, set anew for each attempt."""

import pytest

from ett_trainer_hooks.launcher import LaunchSettings

VARIES = """
import os, sys
from ett_core.events import CompileInput
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
names = ("TORCH_COMPILE_JOB_ID", "TORCH_COMPILE_DYNAMIC_SOURCES")
print(recorder.identity.attempt, *(os.environ.get(name, "-") for name in names), flush=True)
for nth, size in enumerate((64, 65)):
    recorder.compile(
        graph=f"0/{nth}",
        code="f (a.py:1)",
        inputs=[CompileInput("L['x']", (size,))],
        recompile_reason="0/0: tensor 'x' size mismatch at index 0. expected 64, actual 65" if nth else None,
    )
recorder.close()
sys.exit(recorder.identity.attempt == 0)
"""


def test_a_restart_leaves_open_what_varied_before_it(ett_run, events_in, tmp_path):
    """The name of the job is there from the first attempt on, and each decision is told."""
    options = ("--parts", "pgo,dynamic_sources", "--max-restarts", "1", "--restart-delay", "0")
    child = ett_run(VARIES, options=options)
    out, err = child.communicate(timeout=120.0)
    assert child.returncode == 0, err
    assert out.splitlines() == ["0 ett:job -", "1 ett:job L['x']:0"]
    told = [event for event in events_in(tmp_path / "journal") if event.kind == "decision"]
    assert [(event.rank, event.attempt) for event in told if event.what == "dynamic sources"] == [
        (-1, 0),
        (-1, 1),
    ]


def test_values_of_the_user_stay_and_without_the_parts_nothing_is_set(ett_run):
    """As it was given."""
    mine = {"TORCH_COMPILE_JOB_ID": "mine", "TORCH_COMPILE_DYNAMIC_SOURCES": "L['mine']"}
    given = ett_run(VARIES, options=("--parts", "pgo,dynamic_sources"), **mine)
    assert given.communicate(timeout=120.0)[0] == "0 mine L['mine']\n"
    plain = ett_run(VARIES)
    assert plain.communicate(timeout=120.0)[0] == "0 - -\n"


def test_parts_that_belong_into_the_trainer_are_refused_by_name(tmp_path):
    """So are those that do not exist, by the command line."""
    with pytest.raises(
        ValueError, match="stages must be built into the trainer; the launcher has dynamic_sources"
    ):
        LaunchSettings(command=["true"], job_id="j", journal_dir=tmp_path, parts=frozenset({"stages", "pgo"}))
