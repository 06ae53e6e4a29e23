"""What the reference trainer saves with: each keeper brings back what it has saved, and tells of it."""

import shutil
import threading

import pytest

torch = pytest.importorskip("torch")
beside = pytest.importorskip("ett_trainer_hooks.reference.beside")

from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper  # noqa: E402

from ett_trainer_hooks.pipeline.checkpoint import checkpointer  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.writer import write_files  # noqa: E402
from ett_trainer_hooks.reference.keepers import Waiting  # noqa: E402
from ett_trainer_hooks.reference.model import Learner  # noqa: E402
from ett_trainer_hooks.reference.settings import Settings  # noqa: E402

pytestmark = [pytest.mark.service("torch"), pytest.mark.usefixtures("one_rank")]


@pytest.fixture
def keeper_of(tmp_path, bench):
    """Makes a keeper of a kind, as an attempt does; returns it, its policy, and what is told."""
    made = []

    def make(kind, mode="async_thread", **more):
        told = bench()
        policy = CheckpointPolicy(told.recorder)
        settings = Settings(checkpoint_dir=tmp_path / "checkpoints", checkpoint_mode=mode, **more)
        made.append(kind(settings, told.recorder, policy))
        return made[-1], policy, told

    yield make
    for keeper in made:
        keeper.close()


def learner_with(value):
    """A learner whose weights are all `value`, after one step of its optimizer."""
    model = torch.nn.Linear(4, 1)
    dense = KeyedOptimizerWrapper(dict(model.named_parameters()), torch.optim.Adagrad)
    learner = Learner(model, CombinedOptimizer([("dense", dense)]))
    model(torch.ones(2, 4)).sum().backward()
    learner.optimizer.step()
    for weight in model.parameters():
        weight.data.fill_(value)
    return learner


def weights_of(learner):
    return {float(number) for weight in learner.model.parameters() for number in weight.detach().flatten()}


KINDS = [(Waiting, "async_thread"), (beside.Beside, "async_thread"), (beside.Beside, "sync")]


@pytest.mark.parametrize(("kind", "mode"), KINDS)
def test_what_was_saved_comes_back_and_the_policy_hears_of_it(keeper_of, kind, mode):
    keeper, policy, told = keeper_of(kind, mode)
    assert keeper.find() == 0
    keeper.load(learner := learner_with(7.0))
    assert weights_of(learner) == {7.0}
    policy.begin()
    keeper.save(20, learner, leave_in_s=10.0)
    assert keeper.close()
    assert keeper.fault == ""
    assert [each.step for each in told.of("checkpoint_durable")] == [20]
    assert policy.standing().save_s is not None

    keeper, policy, _ = keeper_of(kind, mode)
    assert keeper.find() == 20
    keeper.load(learner := learner_with(0.0))
    assert weights_of(learner) == {7.0}
    assert policy.own.failures == 0  # it had said that it would leave
    assert policy.own.train_s > 0


def test_the_part_goes_on_from_what_was_saved_without_it_where_that_is_further(keeper_of):
    keeper_of(Waiting)[0].save(30, learner_with(3.0))
    for step in (20, 40):
        keeper, *_ = keeper_of(beside.Beside)
        assert keeper.find() == 30
        keeper.load(learner := learner_with(0.0))
        assert weights_of(learner) == {3.0}
        keeper.save(step, learner_with(step))
        assert keeper.close()
    keeper, *_ = keeper_of(beside.Beside)
    assert keeper.find() == 40
    keeper.load(learner := learner_with(0.0))
    assert weights_of(learner) == {40.0}


def test_with_a_remote_place_durable_is_what_is_there_and_a_lost_disk_is_restored(keeper_of, tmp_path):
    url = (tmp_path / "remote").as_uri()
    keeper, policy, told = keeper_of(beside.Beside, checkpoint_remote=url)
    keeper.find()
    policy.begin()
    keeper.save(20, learner_with(2.0))
    assert keeper.close()
    assert [each.step for each in told.of("checkpoint_durable")] == [20]
    assert policy.standing().in_flight_s is None
    shutil.rmtree(tmp_path / "checkpoints")
    keeper, *_ = keeper_of(beside.Beside, checkpoint_remote=url)
    assert keeper.find() == 20
    keeper.load(learner := learner_with(0.0))
    assert weights_of(learner) == {2.0}


def test_with_a_disk_of_the_node_files_go_to_the_remote_place_by_way_of_it(keeper_of, tmp_path):
    places = {"checkpoint_remote": (tmp_path / "remote").as_uri(), "checkpoint_disk": str(tmp_path / "disk")}
    keeper, _, told = keeper_of(beside.Beside, **places)
    assert keeper.find() == 0
    keeper.save(20, learner_with(2.0))
    assert keeper.close()
    assert [each.step for each in told.of("checkpoint_durable")] == [20]
    (committed,) = (tmp_path / "remote").glob("step_20-*/manifest.json")
    assert (tmp_path / "disk" / committed.parent.name / "__0_0.distcp").exists()
    assert not (tmp_path / "checkpoints").exists()
    for lost in (False, True):
        if lost:
            shutil.rmtree(tmp_path / "disk")
        keeper, *_ = keeper_of(beside.Beside, **places)
        assert keeper.find() == 20
        keeper.load(learner := learner_with(0.0))
        assert weights_of(learner) == {2.0}


def test_a_save_that_fails_leaves_nothing_in_flight_for_the_policy(keeper_of, tmp_path):
    (tmp_path / "checkpoints").write_text("a file where the checkpoints should be")
    keeper, policy, told = keeper_of(beside.Beside)
    policy.begin()
    keeper.save(20, learner_with(1.0))
    assert keeper.close()
    assert keeper.fault
    assert [(each.step, each.message) for each in told.of("checkpoint_failed")] == [(20, keeper.fault)]
    standing = policy.standing()
    assert standing.in_flight_s is None
    assert standing.save_s is None  # none was durable: how long that takes is not known


def test_the_last_save_waits_for_the_one_in_flight(keeper_of, monkeypatch):
    """Another one would be given up, and the next make up for it."""
    gate, stuck = threading.Event(), threading.Event()

    def slow(place, *arguments):
        stuck.set()
        assert gate.wait(60)
        return write_files(place, *arguments)

    monkeypatch.setattr(checkpointer, "write_files", slow)
    keeper, _, told = keeper_of(beside.Beside, steps=30)
    keeper._checkpointer._patience_s = 0.0
    keeper.save(10, learner_with(1.0))
    assert stuck.wait(60)
    keeper.save(20, learner_with(2.0))
    assert [each.step for each in told.of("checkpoint_failed")] == [20]
    last = threading.Thread(target=keeper.save, args=(30, learner_with(3.0)))
    last.start()
    gate.set()
    last.join()
    assert keeper.close()
    assert keeper.fault == ""
    assert [each.step for each in told.of("checkpoint_durable")] == [10, 30]
