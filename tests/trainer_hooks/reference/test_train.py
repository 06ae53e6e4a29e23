"""The reference trainer for real, on two ranks; the compiler makes no code, to be quick."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest
from reference_runs import LIMIT_S, train

from ett_trainer_hooks.pipeline.publishing.handover import find

pytestmark = pytest.mark.service("torch")


@pytest.fixture(autouse=True)
def torchrec_is_here():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")


BESIDE = ["--parts", "stored_plan,async_checkpoint,no_wait_staging", "--checkpoint-every-s", "0.001"]
"""Every part that saves beside the training; it saves as often as the ranks agree."""
ALWAYS = ",pgo,dynamic_sources,kept_data,preemption,quick_exit"
OTHERS = ",stages,local_metadata,standalone_publishing" + ALWAYS
FIRST = "stages,fast_batch,stored_plan,interval_control" + ALWAYS
INTERRUPTED = {
    10: ["--pipeline", "sparse_dist", "--parts", FIRST, "--publish-to", "models"],
    20: ["--pipeline", "sparse_dist", *BESIDE],
    35: [*BESIDE, "--parts", BESIDE[1] + OTHERS, "--checkpoint-mode", "async_process"],
}
"""The last step of each attempt of one job, and how it trains until there."""
WARM = 20
"""The attempt without a part that has to come before torch is imported."""


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A job in three attempts: losses of all, and the folder with the journal of each."""
    folder, losses = tmp_path_factory.mktemp("interrupted"), {}
    (tmp := folder / "tmp").mkdir()
    for steps, words in INTERRUPTED.items():
        told = {"ETT_JOB_ID": "reference", "ETT_JOURNAL_DIR": str(folder / str(steps))}
        told["TMPDIR"] = str(tmp)
        warm = steps == WARM
        losses |= train(folder, steps, "--cache", str(folder / "cache"), *words, warm=warm, **told)
    return losses, folder


def test_a_resumed_run_equals_an_uninterrupted_one(interrupted, tmp_path):
    """Weights, optimiser state and data order survive, whatever was read ahead or done side by side."""
    losses, folder = interrupted
    whole = train(tmp_path, 35, warm=True)
    assert len([*folder.glob("cache/plans/*")]) == 1
    assert [*losses] == [*whole] == [5, 10, 15, 20, 25, 30, 35]
    assert losses == pytest.approx(whole, abs=1e-4)
    assert whole[30] < whole[5]


def test_the_journal_tells_phases_steps_and_durable_checkpoints(interrupted):
    """Every rank writes its own journal; the steps add up; rank 0 says what is durable."""
    files = [path.read_text().splitlines() for path in (interrupted[1] / "10").glob("*.jsonl")]
    assert len(files) == 2
    events = [json.loads(line) for lines in files for line in lines]
    started = {event["phase"] for event in events if event["kind"] == "phase_begin"}
    assert started >= {"device_init", "process_group", "preproc_creation", "model_init", "sharding_plan"}
    assert started >= {"checkpoint_load", "data_warmup", "checkpoint"}
    for rank in (0, 1):
        steps = [e["steps"] for e in events if e["kind"] == "progress" and e["rank"] == rank]
        assert sum(steps) == 10
    became = [e["why"] for e in events if e["kind"] == "decision" and e["what"] == "fast batch"]
    assert became == ["used: the first step compiled nothing"] * 2
    paths = [e["why"] for e in events if e["kind"] == "decision" and e["what"] == "start stages"]
    assert [path.startswith("critical path: imports, ") for path in paths] == [True, True]
    durable = [(e["rank"], e["step"]) for e in events if e["kind"] == "checkpoint_durable"]
    assert durable == [(0, 10)]
    assert [e["status"] for e in events if e["kind"] == "attempt_end"] == ["succeeded", "succeeded"]


def test_saves_beside_the_training_are_told_and_durable_in_the_end(interrupted, events_in):
    """The first agreement of an attempt begins the interval, so that it saves from the second one on."""
    for steps, resumed, saved in ((20, 10, [20]), (35, 20, [30, 35])):
        events = events_in(interrupted[1] / str(steps))
        ends = [each for each in events if each.kind == "phase_end"]
        assert [each.resumed_step for each in ends if each.resumed_step] == [resumed] * 2
        assert [each for each in events if each.kind == "checkpoint_failed"] == []
        durable = [each for each in events if each.kind == "checkpoint_durable"]
        assert [(each.step, each.mode, each.rank) for each in durable] == [(s, "async", 0) for s in saved]
        assert {each.phase for each in ends} > {"checkpoint_upload", "checkpoint_staging"}


def test_a_plain_trainer_publishes_its_model_before_it_leaves(interrupted, events_in):
    """What it published agrees with what it predicted, or it had not; the time is called publishing."""
    folder = interrupted[1]
    (file,) = folder.glob("models/step_10-*/card.json")
    card = json.loads(file.read_bytes())
    assert (card["origin"]["step"], card["origin"]["job_id"]) == (10, "reference")
    assert card["validation"]["largest_difference"] <= 1e-5
    phases = [(each.rank, each.phase) for each in events_in(folder / "10") if each.kind == "phase_end"]
    assert [rank for rank, phase in phases if phase == "publish"].count(0) == 2
    assert not {phase for _, phase in phases} & {"unshard", "export", "validate", "upload"}


def test_what_is_handed_over_is_published_once_the_trainer_has_left(interrupted):
    folder = interrupted[1]
    (handover,) = find(folder / "checkpoints" / "committed")
    assert (handover.step, handover.state()) == (35, "pending")
    program = [sys.executable, "-m", "ett_trainer_hooks.pipeline.publishing"]
    words = [str(handover.folder), "--to", str(folder / "left")]
    subprocess.run([*program, *words], capture_output=True, timeout=LIMIT_S, check=True)
    assert (handover.state(), handover.outcome().largest_difference <= 1e-5) == ("done", True)
