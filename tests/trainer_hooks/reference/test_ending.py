"""The end of the reference trainer where something is wrong: what is trained is not lost for it."""

import os

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
handing_over = pytest.importorskip("ett_trainer_hooks.reference.handing_over")

from ett_trainer_hooks.pipeline import takes  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint import asking, sole_writer  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.asking import RemoteError  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.handover import Outcome  # noqa: E402
from ett_trainer_hooks.reference import criteo, model  # noqa: E402
from ett_trainer_hooks.reference.beside import Beside  # noqa: E402
from ett_trainer_hooks.reference.ending import NoEnding, ending_of  # noqa: E402
from ett_trainer_hooks.reference.keepers import Waiting  # noqa: E402
from ett_trainer_hooks.reference.loop import Loop, UnsavedError  # noqa: E402
from ett_trainer_hooks.reference.settings import Settings  # noqa: E402

pytestmark = [pytest.mark.service("torch"), pytest.mark.filterwarnings("ignore")]  # TorchRec's own
SMALL = {"rows": 20, "embedding_dim": 4, "compile": False}
ALONE = "standalone_publishing"


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    """The model on one rank, in the process group of this process alone."""
    store = dist.FileStore(str(tmp_path_factory.mktemp("ranks") / "rendezvous"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    settings, device = Settings(**SMALL), torch.device("cpu")
    dlrm = model.build(settings, device)
    yield model.shard(dlrm, model.plan_shards(dlrm, device), settings, device)
    dist.destroy_process_group()


def ended(settings, bench, learner, checkpoints, *, over=True):
    """What is decided where the last checkpoint is never saved."""
    told = bench()
    ending = ending_of(settings, told.recorder, checkpoints)
    ending.before_anchor(40, learner, None)
    ending.after_anchor(over=over)
    return [(each.what, each.why) for each in told.of("decision")]


def test_without_a_wish_nothing_becomes_of_the_model(bench, tmp_path):
    assert isinstance(ending_of(Settings(), bench().recorder, tmp_path), NoEnding)


def test_from_disks_of_nodes_nothing_is_handed_over_and_that_is_said(bench, tmp_path):
    told = bench()
    places = {"checkpoint_disk": "disk", "checkpoint_remote": "memory://there"}
    settings = Settings(**places, parts=f"{ALONE},async_checkpoint")
    assert isinstance(ending_of(settings, told.recorder, tmp_path), NoEnding)
    (decision,) = told.of("decision")
    assert decision.what == "the model is not handed over"


def test_where_the_last_save_failed_nothing_is_handed_over_and_the_job_goes_on(bench, learner, tmp_path):
    ((what, why),) = ended(Settings(**SMALL, parts=ALONE), bench, learner, tmp_path)
    assert what == "the model is not handed over"
    assert why == f"DamagedError: there is no checkpoint in {tmp_path / 'step_40'}"


def test_where_the_last_save_hangs_nobody_looks_for_it(bench, learner, tmp_path):
    ((what, why),) = ended(Settings(**SMALL, parts=ALONE), bench, learner, tmp_path, over=False)
    assert (what, why) == ("the model is not handed over", "its last checkpoint was given up")
    settings = Settings(**SMALL, publish_to=str(tmp_path / "models"))
    with pytest.raises(handing_over.UnpublishedError, match="its last checkpoint was given up"):
        ended(settings, bench, learner, tmp_path, over=False)


def test_a_disk_that_does_not_take_the_record_does_not_hinder_the_last_save(bench, learner, tmp_path):
    (tmp_path / "publish").write_text("in the way")
    ((what, why),) = ended(Settings(**SMALL, parts=ALONE), bench, learner, tmp_path)
    assert what == "the model is not handed over"
    assert why.startswith("FileExistsError: ")


def test_a_trainer_that_is_to_publish_and_cannot_fails_with_the_reason(bench, learner, tmp_path):
    settings = Settings(**SMALL, publish_to=str(tmp_path / "models"))
    with pytest.raises(handing_over.UnpublishedError, match="DamagedError: there is no checkpoint"):
        ended(settings, bench, learner, tmp_path)


def test_a_start_that_trains_nothing_publishes_what_the_one_before_it_has_recorded(bench, tmp_path):
    settings = Settings(**SMALL, steps=40, publish_to=str(tmp_path / "models"))

    def ends():
        ending_of(settings, bench().recorder, tmp_path).after_anchor(over=True)

    with pytest.raises(handing_over.UnpublishedError, match="not recorded by the start before"):
        ends()
    told = {"job_id": "j", "publishable": "a:b", "settings": {}, "predictions": b""}
    handover = handing_over.prepare(tmp_path, 40, **told)
    with pytest.raises(handing_over.UnpublishedError, match="DamagedError: there is no checkpoint"):
        ends()
    handover.reopen()
    handover.end(Outcome(state="done", by="j", at=1.0))
    ends()


def test_what_was_trained_without_the_part_is_saved_with_it_where_nothing_is_left(
    start, bench, learner, tmp_path
):
    """Else the store that all reach would never get it."""
    told = bench()
    settings = Settings(**SMALL, checkpoint_dir=tmp_path / "checkpoints")
    Waiting(settings, told.recorder, CheckpointPolicy(told.recorder)).save(1, learner)
    remote = tmp_path / "remote"
    for steps in ([1], []):
        told = start(checkpoint_remote=remote.as_uri())
        assert told.of("decision")[0].what == "nothing is left to train"
        assert [each.step for each in told.of("checkpoint_durable")] == steps
    assert len([*remote.glob("step_1-*/manifest.json")]) == 1


def test_a_place_that_nobody_knows_is_told_before_anything_is_trained(bench, tmp_path):
    with pytest.raises(RemoteError, match="nosuch://models: Protocol not known"):
        ending_of(Settings(publish_to="nosuch://models"), bench().recorder, tmp_path)


@pytest.fixture
def start(bench, learner, tmp_path):
    """A start of a job of one step: trains what is left, and returns what is told."""

    def run(lease=None, **places):
        where = {"checkpoint_dir": tmp_path / "checkpoints", "parts": "async_checkpoint", **places}
        settings, told = Settings(**SMALL, **where, steps=1, batch_size=8), bench()
        policy = CheckpointPolicy(told.recorder)
        keeper = Beside(settings, told.recorder, policy)
        loop = Loop(settings, told.recorder, learner, keeper, policy, lease=lease)
        signal = criteo.planted_signal(settings.seed, settings.rows)
        batch = model.as_batch(criteo.samples(signal, settings.seed, 0, 1, settings.batch_size))
        done = keeper.find()
        try:
            loop.run([batch][done:], done, first_steps_done=lambda: None)
        finally:
            keeper.close()
        return told

    return run


def test_a_trainer_whose_last_step_is_not_saved_fails_with_the_reason(start, tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(UnsavedError, match=r"the last step, 1, is not saved: .*NotADirectoryError"):
        start()


def test_a_trainer_that_another_start_has_taken_over_from_saves_nothing(start, bench, tmp_path):
    lease = sole_writer.claim(tmp_path, bench().recorder)
    os.utime(tmp_path / sole_writer.FOLDER / "take-1.json", takes.LET_GO)
    after = sole_writer.claim(tmp_path, bench().recorder)
    with pytest.raises(takes.LostError):
        start(lease)
    assert not (tmp_path / "checkpoints" / "committed").exists()
    after.release()


def test_a_start_after_the_last_step_says_so_and_brings_it_where_it_was_to_be(
    start, tmp_path, monkeypatch, capsys
):
    """It fails as long as that cannot be: the disk of the job may be gone tomorrow."""
    monkeypatch.setattr(asking, "PAUSES_S", ())
    way = tmp_path / "remote"
    way.write_text("in the way")
    said = "nothing is left to train: an earlier start has done 1 of 1 steps\n"
    for printed in ("step 1 of 1: loss ", said):
        with pytest.raises(UnsavedError, match=r"the last step, 1, is not saved: .*NotADirectoryError"):
            start(checkpoint_remote=way.as_uri())
        assert capsys.readouterr().out.startswith(printed)
    way.unlink()
    told = start(checkpoint_remote=way.as_uri())
    assert [each.what for each in told.of("decision")] == [
        "the checkpoint of step 1 is brought to the remote store",
        "nothing is left to train",
    ]
    assert [each.step for each in told.of("checkpoint_durable")] == [1]
    assert [*way.glob("step_1-*/manifest.json")]
    told = start(checkpoint_remote=way.as_uri())
    assert capsys.readouterr().out == 2 * said
    assert told.of("checkpoint_durable") == told.of("checkpoint_failed") == []
