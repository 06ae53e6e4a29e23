import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core import torchtitan_names as names
from ett_core.components import INIT_PHASES, LOOP_COMPONENT_OF_PHASE

OPENED = re.compile(r'log_trace_span\("(\w+)"')
PARTS_OF_A_TRAINER = ("train.py", "trainer.py", "components", "tools", "config")


def trainer_sources() -> list[Path]:
    root = Path(importlib.util.find_spec("torchtitan").origin).parent
    parts = [root / part for part in PARTS_OF_A_TRAINER]
    return [path for part in parts for path in (part.rglob("*.py") if part.is_dir() else [part])]


@pytest.mark.service("torchtitan")
def test_every_span_of_the_installed_trainer_has_a_meaning():
    """A span that torchtitan's trainer opens is known here, so none of its seconds go astray."""
    opened = {span for path in trainer_sources() for span in OPENED.findall(path.read_text())}
    assert {"step", "fwd_bwd", "checkpoint_save", "torch_distributed_init", "eval"} <= opened
    assert [span for span in sorted(opened) if names.meaning_of(span).role == names.UNNAMED] == []


@pytest.mark.parametrize(
    ("span", "phase"),
    [
        ("torch_distributed_init", "process_group"),
        ("checkpoint_load", "checkpoint_load"),
        ("checkpoint_save", "checkpoint"),
        ("eval", "evaluation"),
        ("torch_distributed_teardown", "shutdown"),
        ("Trainer.Config.build", "model_init"),
        ("Llama3Model.Config.build", "model_init"),
        ("OptimizersContainer.Config.build", "model_init"),
        ("HuggingFaceTokenizer.Config.build", "preproc_creation"),
        ("HuggingFaceTextDataLoader.Config.build", "preproc_creation"),
        ("MetricsProcessor.Config.build", "init_plugins"),
        ("CheckpointManager.Config.build", "init_plugins"),
    ],
)
def test_a_span_becomes_the_phase_of_that_name(span, phase):
    """Phases are the ones that the accounting has a component for, but for Meta's `init_plugins`."""
    assert names.phase_of(span, in_step=False) == phase
    assert phase in {*INIT_PHASES, *LOOP_COMPONENT_OF_PHASE, "init_plugins"}


@pytest.mark.parametrize("span", ["fwd_bwd", "optim", "gc_collect", "step", "fetching_batch"])
@pytest.mark.parametrize("in_step", [True, False])
def test_parts_of_a_step_are_no_phases(span, in_step):
    """A step's own work and its waiting are told by its steps, not twice."""
    assert names.phase_of(span, in_step=in_step) is None


def test_a_dataloader_built_for_an_evaluation_stays_in_the_evaluation():
    """Inside a step nothing is initialised: a build there belongs to what is around it."""
    assert names.phase_of("ValidationDataLoader.Config.build", in_step=True) is None


def test_an_instant_whose_name_ends_like_a_span_is_no_span():
    """The trainer marks `training_start`; only its log type tells it from the begin of a span."""
    assert names.edge_of("training_start", "instant") == ("training_start", names.MARK)
    assert names.edge_of("structured_logger_started") == ("structured_logger_started", names.MARK)


def test_the_text_of_an_error_may_have_any_form():
    """Line breaks and further colons belong to the message; a record without a type says nothing."""
    message = "[step N/A] torch_distributed_init_error: DistNetworkError: failed:\n_error: twice"
    assert names.error_of(message) == ("DistNetworkError", "failed:\n_error: twice")
    assert names.error_of("[step 3] fwd_bwd_end took 3.00 ms") is None


@given(st.text(), st.sampled_from(["event", "instant", "text", ""]))
def test_any_name_has_one_edge_and_one_meaning(name, log_type):
    """No record of another version makes a reader fail."""
    span, edge = names.edge_of(name, log_type)
    assert edge in (names.BEGIN, names.END, names.ERROR, names.MARK)
    assert name.startswith(span)
    assert names.meaning_of(span).role in (
        names.PHASE,
        names.STEP,
        names.DATA_WAIT,
        names.PART,
        names.UNNAMED,
    )


@given(st.text())
def test_any_message_can_be_asked_for_an_error(message):
    """A garbled message is no error, or one with a name."""
    found = names.error_of(message)
    assert found is None or found[0]
