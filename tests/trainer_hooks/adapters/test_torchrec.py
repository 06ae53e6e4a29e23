"""TorchRec's pipelines: steps, waits and the first batch are told right although they read ahead."""

from __future__ import annotations

import contextlib
import json
import os
import threading

import pytest

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters.torchrec import ObservedPipeline
from ett_trainer_hooks.identity import Identity

torch = pytest.importorskip("torch")
pipelines = pytest.importorskip("torchrec.distributed.train_pipeline.train_pipelines")
accumulation = pytest.importorskip("torchrec.distributed.train_pipeline.gradient_accumulation")

pytestmark = pytest.mark.service("torch")

CPU = torch.device("cpu")


class Tiny(torch.nn.Module):
    """A model in the form that the pipelines want: losses and outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, batch):
        out = batch @ self.weight
        return out.square().mean().unsqueeze(0), out.detach()


def batches(count):
    generator = torch.Generator().manual_seed(7)
    return (torch.randn(8, 4, generator=generator) for _ in range(count))


def base(model=None):
    model = model or Tiny()
    return pipelines.TrainPipelineBase(model, torch.optim.SGD(model.parameters(), lr=0.1), CPU)


def outputs(pipeline, iterator):
    """All outputs of a pipeline, to the end of its batches."""

    def steps():
        with contextlib.suppress(StopIteration):
            while True:
                yield pipeline.progress(iterator)

    return list(steps())


def steps(observer):
    return [(event.step, event.samples) for event in observer.of("progress")]


def test_the_same_is_learned_and_every_step_is_told(observer):
    """Outputs are those of the pipeline alone; each `progress()` is a step with the samples of its batch."""
    alone = outputs(base(), batches(5))
    pipeline = ObservedPipeline(observer.recorder, base(), samples=len)
    told = outputs(pipeline, batches(5))
    assert len(told) == 5
    assert all(torch.equal(a, b) for a, b in zip(alone, told, strict=True))
    assert steps(observer) == [(step, 8.0) for step in range(1, 6)]
    assert observer.warnings == []


def test_samples_belong_to_the_batch_that_was_trained_on(observer):
    """The pipeline reads the next batch in the same call; a step has the samples of its own."""
    sizes = [1, 2, 3, 4]
    pipeline = ObservedPipeline(observer.recorder, base(), samples=len)
    outputs(pipeline, (torch.ones(size, 4) for size in sizes))
    assert steps(observer) == [(step, float(size)) for step, size in enumerate(sizes, 1)]


def test_samples_that_are_no_number_cost_nothing_but_themselves(observer):
    """Such as an array of them: the pipeline trains on, and each step is told without samples."""
    pipeline = ObservedPipeline(observer.recorder, base(), samples=lambda batch: batch[0])
    assert len(outputs(pipeline, batches(3))) == 3
    assert steps(observer) == [(step, 0.0) for step in range(1, 4)]
    assert len(observer.warnings) == 1


def test_the_first_batch_begins_with_the_forward_pass(observer):
    """Two batches are read before it: that is data warm-up, not the loop; no hook stays on the model."""
    model = Tiny()
    pipeline = ObservedPipeline(observer.recorder, base(model), samples=8)
    pipeline.progress(batches(5))
    kinds = [event.kind for event in observer.told()]
    assert kinds == ["phase_begin", "phase_end"] * 2 + ["first_batch", "progress"]
    assert observer.phases() == ["data_warmup"] * 2
    assert pipeline.prefetched == 1
    assert len(model._forward_pre_hooks) == 0


def test_the_position_of_the_data_is_known(observer):
    """What was read and not trained on is told after each step, and nothing at the end."""
    pipeline = ObservedPipeline(observer.recorder, base())
    iterator = batches(4)
    ahead = []
    for _ in range(4):
        pipeline.progress(iterator)
        ahead.append(pipeline.prefetched)
    assert ahead == [1, 1, 1, 0]
    with pytest.raises(StopIteration):
        pipeline.progress(iterator)
    pipeline.reset()
    assert pipeline.progress(batches(2)) is not None
    assert pipeline.prefetched == 1


def test_a_second_pipeline_goes_on_with_the_steps(observer):
    """The loop has begun: what it reads at first is data wait, and no second first batch is told."""
    outputs(ObservedPipeline(observer.recorder, base()), batches(2))
    outputs(ObservedPipeline(observer.recorder, base()), batches(2))
    assert [event.step for event in observer.of("progress")] == [1, 2, 3, 4]
    assert len(observer.of("first_batch")) == 1
    assert observer.phases() == ["data_warmup"] * 2


def test_only_the_waiting_of_the_training_thread_counts(observer):
    """A pipeline that reads from a thread of its own does not keep the trainer waiting."""

    class Reader:
        _model = None

        def progress(self, iterator):
            got = []
            thread = threading.Thread(target=lambda: got.append(next(iterator)))
            thread.start()
            thread.join()
            return got[0]

    now_s = iter(range(1000))
    pipeline = ObservedPipeline(observer.recorder, Reader(), samples=3, monotonic=lambda: next(now_s))
    iterator = iter("abc")
    assert [pipeline.progress(iterator) for _ in range(3)] == ["a", "b", "c"]
    assert [event.data_wait_s for event in observer.of("progress")] == [0.0, 0.0, 0.0]
    assert observer.phases() == []


def test_waiting_inside_progress_is_data_wait(observer):
    """By the clock: what the iterator took of a step, to the second."""
    now_s = [0.0]

    def slowly(count):
        for each in batches(count):
            now_s[0] += 2.0
            yield each

    pipeline = ObservedPipeline(observer.recorder, base(), monotonic=lambda: now_s[0])
    outputs(pipeline, slowly(4))
    assert [event.data_wait_s for event in observer.of("progress")] == [0.0, 2.0, 2.0, 0.0]


def test_a_pipeline_that_compiles_its_model_gets_no_hook_in_it(observer):
    """Its step begins with the batch, which it reads right before the forward pass."""
    model = Tiny()
    seen = []
    model.register_forward_hook(lambda *_: seen.append(len(model._forward_pre_hooks)))
    inner = pipelines.TrainPipelinePT2(model, torch.optim.SGD(model.parameters(), lr=0.1), CPU)
    pipeline = ObservedPipeline(observer.recorder, inner, samples=len)
    iterator = batches(2)
    for _ in range(2):
        pipeline.progress(iterator)
    assert seen == [0, 0]
    assert steps(observer) == [(1, 8.0), (2, 8.0)]
    kinds = [event.kind for event in observer.told()]
    assert kinds[:3] == ["phase_begin", "phase_end", "first_batch"]


def test_a_pass_in_evaluation_mode_is_no_step(observer):
    """The same pipeline evaluates between steps: nothing is counted, and training goes on as before."""
    model = Tiny()
    pipeline = ObservedPipeline(observer.recorder, base(model), samples=len)
    outputs(pipeline, batches(3))
    pipeline.reset()
    model.eval()
    assert len(outputs(pipeline, batches(4))) == 4
    pipeline.reset()
    model.train()
    outputs(pipeline, batches(2))
    assert steps(observer) == [(step, 8.0) for step in range(1, 6)]
    assert pipeline.prefetched == 0


def test_gradient_accumulation_of_torchrec_is_observed_as_it_is(observer):
    """Its own argument is passed on, the same is learned, and a step is a batch."""

    def accumulating(model):
        config = accumulation.GradientAccumulationConfig(is_enabled=True, num_steps=2)
        inner = base(model)
        return accumulation.GradientAccumulationWrapper(inner, inner._optimizer, model, config)

    weights = []
    for recorder in (None, observer.recorder):
        model = Tiny()
        pipeline = accumulating(model)
        if recorder is not None:
            pipeline = ObservedPipeline(recorder, pipeline, samples=len)
        iterator = batches(5)
        for number in range(1, 6):
            pipeline.progress(iterator, is_last_batch=number == 5)
        weights.append(model.weight.detach().clone())
        assert pipeline.current_step == 5
    assert torch.equal(*weights)
    assert steps(observer) == [(step, 8.0) for step in range(1, 6)]


def test_what_the_model_or_the_data_raise_passes_through(observer):
    """The same exception object; no step is told for it."""

    def broken():
        yield torch.ones(8, 4)
        raise OSError("storage is gone")

    with pytest.raises(OSError, match="storage is gone"):
        ObservedPipeline(observer.recorder, base()).progress(broken())
    with pytest.raises(RuntimeError, match="size mismatch"):
        ObservedPipeline(observer.recorder, base()).progress(iter([torch.ones(8, 3), torch.ones(8, 3)]))
    assert observer.of("progress") == []


def test_all_else_is_the_pipeline(observer):
    """Attributes and methods of the pipeline are reached, unknown ones are unknown."""
    inner = base()
    pipeline = ObservedPipeline(observer.recorder, inner)
    assert pipeline._model is inner._model
    pipeline.reset()
    with pytest.raises(AttributeError, match="no_such_thing"):
        pipeline.no_such_thing  # noqa: B018 - the look-up is the test


class BrokenJournal:
    is_open = True
    dropped = 0

    def put(self, *_args, **_words):
        raise OSError("the journal is broken")

    def flush(self, _timeout_s):
        return False


def test_hooks_that_fail_change_no_output(capsys):
    """With a journal and a count of samples that raise, the pipeline gives what it gives alone."""
    alone = outputs(base(), batches(4))
    recorder = Recorder(identity=Identity(job_id="j", writer="w"), journal=BrokenJournal())
    told = outputs(ObservedPipeline(recorder, base(), samples=lambda _: 1 / 0), batches(4))
    assert all(torch.equal(a, b) for a, b in zip(alone, told, strict=True))
    assert recorder.step == 4
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("ranks", [1, 2] if os.environ.get("ETT_FULL") == "1" else [2])
def test_a_sharded_dlrm_learns_the_same_and_its_time_is_told(torchrun, ranks):
    """Losses of the plain loop; read-ahead, waits, samples and a save of both pipelines, on every rank."""
    ran = torchrun("pipelines.py", "journal", "plain", "base", "sparse_dist", ranks=ranks)
    assert ran.status == 0, ran.err
    said = {way["way"]: way for way in map(json.loads, ran.out.splitlines())}
    losses = said["plain"]["losses"]
    assert len(losses) == 12
    for way, ahead in (("base", 1), ("sparse_dist", 2)):
        assert said[way]["losses"] == pytest.approx(losses, abs=1e-5)
        assert said[way]["ahead"] == [min(ahead, 11 - step) for step in range(12)]
        assert said[way]["restored"]
        durable = [event for event in ran.of("checkpoint_durable") if event.job_id == way]
        assert [(event.rank, event.step, event.mode) for event in durable] == [(0, 12, "async")]
        for rank in range(ranks):
            mine = [event for event in ran.of("progress", rank) if event.job_id == way]
            assert sum(event.steps for event in mine) == 12
            assert sum(event.samples for event in mine) == 12 * 32
            told = [event for event in ran.of("phase_end", rank) if event.job_id == way]
            phases = [event.phase for event in told if not event.phase.startswith("checkpoint")]
            assert phases == ["data_warmup"] * (ahead + 1)
            if rank == 0:
                read_s = sum(event.data_wait_s for event in mine)
                assert read_s == pytest.approx(sum(said[way]["spent_s"][ahead + 1 :]), rel=0.1, abs=0.02)
