"""`ett publish` with real processes: a killed publisher is followed; the reference model is served."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("fsspec")

import toy_model  # noqa: E402
from gloo_ranks import run_ranks  # noqa: E402

from ett_cli import publishing  # noqa: E402
from ett_cli.commands.publish import _watch as watch  # noqa: E402
from ett_cli.main import main  # noqa: E402
from ett_trainer_hooks import Recorder  # noqa: E402
from ett_trainer_hooks.pipeline import takes  # noqa: E402
from ett_trainer_hooks.pipeline.publishing import working  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.handover import PREDICTIONS, find, prepare  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.predictions import unpacked  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.serving import load  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.statuses import NEVER, PUBLISHED  # noqa: E402

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.filterwarnings("ignore:torch.distributed is (disabled|unavailable)"),  # torch's, at saves
]
PROGRAMS = Path(__file__).with_name("programs")
LIMIT_S = 600.0
LABELS = ("publishes", "purpose", "cluster", "team")


@pytest.fixture
def ett_publish(tmp_path):
    """Starts `ett publish` with the toy model at hand; ends what is left of it with the test."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    paths = [str(Path(toy_model.__file__).parent), *filter(None, [mine.get("PYTHONPATH")])]
    environ = {**mine, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    started = []

    def begin(*words):
        command = [str(Path(sys.executable).with_name("ett")), "publish", *map(str, words)]
        child = subprocess.Popen(
            [*command, "--delay", "0", "--journal-dir", str(tmp_path / "journal")],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        return child

    yield begin
    for child in started:
        child.kill()
        child.communicate()


def wait_until(condition, child):
    """Processes that import torch on a busy machine take their time."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.01)


def ended(child):
    out, err = child.communicate(timeout=LIMIT_S)
    return child.returncode, out, err


def test_a_killed_publisher_is_followed_by_another_which_publishes(tmp_path, ett_publish, events_in):
    gate, models = tmp_path / "gate", tmp_path / "models"
    handover = toy_model.handed_over(tmp_path / "job", gate=str(gate))
    child = ett_publish(
        "--watch", tmp_path, "--to", models, "--every", "0.1", "--json", "--label", "team=ads"
    )
    wait_until(Path(f"{gate}.reached").exists, child)
    assert ended(ett_publish(tmp_path / "job"))[:2] == (1, "step 40 of trainer: is being published\n")
    os.kill(takes.latest(handover.folder)[1].pid, signal.SIGKILL)
    gate.touch()
    row = json.loads(child.stdout.readline())
    assert (row["state"], row["step"], row["by"]) == ("done", 40, "trainer.publish-40")
    assert handover.outcome().largest_difference < 1e-6
    assert load(Path(row["place"]))
    assert {entry.name for entry in models.iterdir() if entry.is_dir()} == {Path(row["place"]).name}
    assert row["place"].endswith(".2")
    child.send_signal(signal.SIGINT)
    assert child.wait(LIMIT_S) == 0
    told = events_in(tmp_path / "journal")
    phases = [each.phase for each in told if each.kind == "phase_end"]
    assert phases[-6:] == ["imports", "load", "unshard", "export", "validate", "upload"]
    labels = [each.labels for each in told if each.kind == "attempt_start"]
    assert {tuple(map(each.get, LABELS)) for each in labels} == {("trainer", "publishing", "c1", "ads")}
    assert [each.status for each in told if each.kind == "job_end"] == ["succeeded"]


def test_what_failed_is_said_with_its_reason(tmp_path, capsys):
    handover = toy_model.handed_over(tmp_path / "job", off_by=0.5)
    assert working.run(handover, str(tmp_path / "models"), Recorder.from_env({}), form="plain") == NEVER
    assert main(["publish", str(tmp_path / "job")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("step 40 of trainer: failed, DisagreementError: the published model disagrees")
    assert main(["publish", str(tmp_path / "job" / "step_40"), "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["handovers"]
    assert (row["state"], row["checkpoint"]) == ("failed", str(tmp_path / "job" / "step_40"))


def waits(checkpoints, step):
    """A hand-over that nobody could publish."""
    handover = prepare(checkpoints, step, job_id="j", publishable="a:b", settings={}, predictions=b"")
    (checkpoints / f"step_{step}").mkdir()
    (checkpoints / f"step_{step}" / ".metadata").touch()
    handover.asked_for()
    return handover


def test_those_of_all_runs_are_found(tmp_path):
    made = waits(tmp_path / "runs" / "job" / "checkpoints" / "committed", 40)
    assert publishing.found_in(tmp_path / "runs") == [made]


def test_of_several_the_newest_is_published_last(tmp_path, monkeypatch):
    """So that it is what `latest` names."""
    for step in (40, 9, 200):
        waits(tmp_path, step)
    steps = []
    monkeypatch.setattr(publishing, "publish", lambda handover, *_: steps.append(handover.step))
    publishing.publish_all(publishing.found_in(tmp_path), publishing.Order(address="m"), {}, steps.append)
    assert steps == [9, 40, 200]


def test_a_watch_outlives_a_disk_that_fails(tmp_path, monkeypatch, capsys):
    def stale(_):
        raise OSError(116, "Stale file handle", str(tmp_path))

    def wait(_):
        waits.append(len(waits))
        if len(waits) == 2:
            monkeypatch.setattr(publishing, "found_in", lambda _: [])
        if len(waits) == 3:
            raise KeyboardInterrupt

    waits = []
    monkeypatch.setattr(publishing, "found_in", stale)
    arguments = argparse.Namespace(watch=tmp_path, every=10.0, json=False)
    assert watch(arguments, publishing.Order(address="m"), wait) == 0
    said = f"ett publish: [Errno 116] Stale file handle: '{tmp_path}'; looks again every 10 s\n"
    assert capsys.readouterr().err == said


@pytest.mark.sweep
def test_what_failed_is_tried_again_where_that_is_wanted(tmp_path, ett_publish):
    toy_model.handed_over(tmp_path / "job", off_by=0.5)
    status, _, err = ended(ett_publish(tmp_path / "job", "--to", tmp_path / "models"))
    assert (status, "Traceback" in err) == (1, False)
    more = ("--tolerance", "1", "--again", "--json")
    status, out, _ = ended(ett_publish(tmp_path / "job", "--to", tmp_path / "models", *more))
    assert (status, json.loads(out)["handovers"][0]["state"]) == (0, "done")


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["{}"], 1, "nothing was handed over in"),
        (["{}/nowhere"], 1, "nowhere: No such file or directory"),
        (["--watch", "{}"], 2, "--watch needs --to"),
        (["{}", "--to", "m", "--tries", "0"], 2, "tries=0 is not at least 1"),
        (["--watch", "{}", "--to", "m", "--every", "nan"], 2, "--every=nan is not 0 to 1,000,000,000 s"),
        (["--watch", "{}", "--to", "m", "--every", "1e10"], 2, "--every=10000000000.0 is not 0 to"),
        (["{}", "--to", "m", "--delay", "nan"], 2, "delay=nan is not 0 to"),
        (["{}", "--to", "nosuch://models"], 2, "nosuch://models: Protocol not known: nosuch"),
    ],
)
def test_a_wrong_command_line_and_an_empty_directory_are_told(tmp_path, capsys, words, status, complaint):
    assert main(["publish", *(word.format(tmp_path) for word in words)]) == status
    assert complaint in capsys.readouterr().err


def test_tables_that_were_cut_by_rows_and_by_columns_are_published_whole(tmp_path):
    parts = run_ranks(PROGRAMS / "sharded.py", tmp_path, str(tmp_path / "job"), ranks=3)
    assert parts == [[[17, 4], [50, 2]], [[17, 4], [50, 2]], [[16, 4], [50, 0]]]
    (handover,) = find(tmp_path / "job")
    assert working.run(handover, str(tmp_path / "models"), Recorder.from_env({}), form="plain") == PUBLISHED
    assert handover.outcome().largest_difference < 1e-6
    assert json.loads(Path(handover.outcome().place, "card.json").read_bytes())["origin"]["world_size"] == 3


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's and TorchRec's, when they are imported
def test_the_reference_model_of_two_ranks_is_published_from_both_kinds_of_stores(tmp_path):
    pytest.importorskip("torchrec")
    run_ranks(PROGRAMS / "handing_over.py", tmp_path, str(tmp_path))
    for kind, form, tolerance in (("plain", "plain", 1e-6), ("safe", "int8", 1e-3)):
        (handover,) = find(tmp_path / kind)
        models = tmp_path / f"{kind}-models"
        assert working.run(handover, str(models), Recorder.from_env({}), form=form) == PUBLISHED
        numbers, bags, wanted = unpacked((handover.folder / PREDICTIONS).read_bytes())
        model = load(models)
        assert torch.allclose(model.predict(numbers, bags), wanted, atol=tolerance)
        assert model.predict(numbers, bags).std() > 0.01
