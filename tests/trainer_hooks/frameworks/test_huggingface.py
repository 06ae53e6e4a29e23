"""The real Trainer of transformers, observed by its callback."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.service("transformers"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def hf(stopwatch, spend, saves):
    """Transformers, and a model and data that measure what they do."""
    import torch
    import transformers

    from ett_trainer_hooks.adapters.huggingface import ETTCallback

    class Data(torch.utils.data.Dataset):
        def __init__(self, name="data", seconds=0.0, size=32):
            self.name, self.seconds, self.size = name, seconds, size

        def __len__(self):
            return self.size

        def __getitem__(self, index):
            with stopwatch.of(self.name):
                spend(self.seconds)
                return {"numbers": torch.full((4,), index / 40), "labels": torch.ones(1)}

    class Model(torch.nn.Module):
        def __init__(self, seconds=0.0, memory=99):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 1)
            self.seconds, self.memory = seconds, memory
            self.losses = []

        def forward(self, numbers, labels):
            if len(numbers) > self.memory:
                raise RuntimeError("CUDA out of memory.")
            with stopwatch.of("training" if self.training else "evaluation"):
                spend(self.seconds)
                out = self.layer(numbers)
                loss = ((out - labels) ** 2).mean()
            if self.training:
                self.losses.append(loss.item())
            return {"loss": loss, "logits": out}

    def trainer(model, *callbacks, train=None, evaluation=None, **settings):
        chosen = {"per_device_train_batch_size": 4, "save_strategy": "no", "logging_steps": 2, **settings}
        quiet = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "output_dir": str(saves)}
        arguments = transformers.TrainingArguments(**quiet, **chosen)
        return transformers.Trainer(
            model=model,
            args=arguments,
            train_dataset=train or Data(),
            eval_dataset=evaluation,
            callbacks=list(callbacks),
        )

    return SimpleNamespace(hf=transformers, Callback=ETTCallback, Data=Data, Model=Model, trainer=trainer)


def test_the_parts_are_what_the_program_measured_itself(hf, played, loop, saves):
    """Waits, evaluations and training agree with a stopwatch in the model and the data; steps add up."""

    class Measure(hf.hf.TrainerCallback):
        def on_step_begin(self, *_, **__):
            loop.first_batch()

        def on_train_end(self, *_, **__):
            loop.end()

    told = played()
    trainer = hf.trainer(
        hf.Model(0.01),
        hf.Callback(process=told.process),
        Measure(),
        train=hf.Data("wait", 0.002),
        evaluation=hf.Data("validation"),
        num_train_epochs=2,
        gradient_accumulation_steps=2,
        save_strategy="steps",
        save_steps=2,
        eval_strategy="epoch",
    )
    trainer.train()
    told.process.leave()
    parts = told.account().components
    assert told.account().state == "succeeded"
    loop.agrees(wait=parts["data_wait"], evaluation=parts["evaluation"], training=parts["training"])
    assert told.phases()[:3] == ["trainer_setup", "data_warmup", "checkpoint"]
    assert [told.phases().count(name) for name in ("evaluation", "checkpoint", "shutdown")] == [2, 4, 1]
    progress = told.of("progress")
    assert (progress[-1].step, sum(each.steps for each in progress)) == (trainer.state.global_step, 8)
    durable = told.of("checkpoint_durable")
    assert [event.step for event in durable] == [2, 4, 6, 8]
    files = [path for path in (saves / "checkpoint-2").rglob("*") if path.is_file()]
    assert durable[0].bytes == sum(path.stat().st_size for path in files)
    assert [event.step for event in told.of("first_batch")] == [0]


def test_what_is_learned_is_the_same(hf, played):
    """The same losses to the last bit, observed, alone and with the hooks off."""
    from ett_trainer_hooks.adapters.process import Process

    def losses(*callbacks):
        model = hf.Model()
        hf.trainer(model, *callbacks, num_train_epochs=2).train()
        return model.losses

    alone = losses()
    assert losses(hf.Callback(process=played().process)) == alone
    assert losses(hf.Callback(process=Process(environ={}))) == alone


def test_a_resumed_trainer_says_from_where_and_what_was_lost(hf, played):
    """The second attempt goes on from step 6; what the first trained after it was in vain."""
    reached_s = {}

    class Break(hf.hf.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            reached_s[state.global_step] = time.monotonic()
            if state.global_step == 8:
                raise RuntimeError("a broken link")

    settings = {"max_steps": 10, "save_strategy": "steps", "save_steps": 3}
    first = played()
    with pytest.raises(RuntimeError, match="a broken link"):
        hf.trainer(hf.Model(0.01), hf.Callback(process=first.process), Break(), **settings).train()
    first.process.recorder().failure(RuntimeError("a broken link"))
    second = played()
    trainer = hf.trainer(hf.Model(0.01), hf.Callback(process=second.process), **settings)
    trainer.train(resume_from_checkpoint=True)
    second.process.leave()
    account = second.account()
    assert [event.step for event in second.of("first_batch")] == [0, 6]
    assert (account.state, len(account.failures)) == ("succeeded", 1)
    assert 0.019 < account.components["unsaved_training"] < reached_s[8] - reached_s[6] + 0.01
    assert second.of("progress")[-1].step == 10


def test_a_smaller_batch_size_begins_the_steps_anew(hf, played):
    """Where the Trainer finds that its batches are too large, what follows is counted from the start."""
    told = played()
    callback = hf.Callback(process=told.process)
    trainer = hf.trainer(
        hf.Model(memory=4),
        callback,
        per_device_train_batch_size=8,
        auto_find_batch_size=True,
        num_train_epochs=1,
    )
    trainer.train()
    told.process.leave()
    assert told.of("progress")[-1].step == trainer.state.global_step
    assert sum(event.steps for event in told.of("progress")) == trainer.state.global_step
    assert told.account().state == "succeeded"


def test_evaluations_outside_training_are_told_too(hf, played):
    """Before and after it, and alone; an evaluation ends the job as well as training does."""
    told = played()
    trainer = hf.trainer(
        hf.Model(0.01), hf.Callback(process=told.process), evaluation=hf.Data("validation"), max_steps=2
    )
    trainer.evaluate()
    told.process.leave()
    assert told.phases() == ["evaluation"]
    assert [event.status for event in told.of("attempt_end")] == ["succeeded"]
    again = played()
    trainer = hf.trainer(
        hf.Model(0.01), hf.Callback(process=again.process), evaluation=hf.Data("validation"), max_steps=2
    )
    trainer.train()
    trainer.evaluate()
    trainer.predict(hf.Data("test"))
    again.process.leave()
    assert again.phases()[-3:] == ["shutdown", "evaluation", "evaluation"]


def test_several_sets_of_evaluation_are_one_phase_and_saves_follow_them(hf, played, stopwatch):
    """Also in the first round, of which nobody knows yet how many sets it has."""
    told = played()
    trainer = hf.trainer(
        hf.Model(0.005),
        hf.Callback(process=told.process),
        evaluation={"a": hf.Data("a"), "b": hf.Data("b")},
        max_steps=6,
        save_strategy="steps",
        save_steps=2,
        eval_strategy="steps",
        eval_steps=2,
    )
    trainer.train()
    told.process.leave()
    assert [told.phases().count(name) for name in ("evaluation", "checkpoint")] == [3, 3]
    parts = told.account().components
    assert stopwatch.seconds["evaluation"] * 0.98 < parts["evaluation"]
    blocking = sum(event.blocking_s for event in told.of("checkpoint"))
    assert parts["checkpoint_blocking"] == pytest.approx(blocking, rel=0.2, abs=0.01)


def test_a_save_that_nothing_announced_is_told_afterwards(hf, played):
    """By a callback that comes after ours, and by the best metric so far."""

    class Save(hf.hf.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            control.should_save = state.global_step == 2

    told = played()
    hf.trainer(hf.Model(), hf.Callback(process=told.process), Save(), max_steps=3).train()
    assert [event.step for event in told.of("checkpoint_durable")] == [2]
    assert told.phases().count("checkpoint") == 1
    best = played()
    hf.trainer(
        hf.Model(),
        hf.Callback(process=best.process),
        evaluation=hf.Data(),
        max_steps=3,
        save_strategy="best",
        metric_for_best_model="loss",
        eval_strategy="steps",
        eval_steps=1,
    ).train()
    saved = [event.step for event in best.of("checkpoint") if event.attempt == 1]
    assert saved == [1, 2, 3]


def test_early_stopping_is_a_success(hf, played):
    """A trainer that stops because nothing gets better any more ends well."""
    told = played()
    trainer = hf.trainer(
        hf.Model(),
        hf.Callback(process=told.process),
        hf.hf.EarlyStoppingCallback(early_stopping_patience=1, early_stopping_threshold=9.0),
        evaluation=hf.Data(),
        max_steps=9,
        save_strategy="steps",
        save_steps=1,
        eval_strategy="steps",
        eval_steps=1,
        metric_for_best_model="loss",
    )
    trainer.train()
    told.process.leave()
    assert trainer.state.global_step == 2
    assert told.account().state == "succeeded"


def test_two_trainings_in_one_process_are_one_attempt(hf, played, stopwatch, spend):
    """One writer; what happens between them is neither training nor waiting."""
    told = played()
    trainers = [hf.trainer(hf.Model(), hf.Callback(process=told.process), max_steps=3) for _ in range(2)]
    for trainer in trainers:
        with stopwatch.of("trainings"):
            trainer.train()
        spend(0.3)
    told.process.leave()
    parts = told.account().components
    assert len({event.writer for event in told.events}) == 1
    assert sum(event.steps for event in told.of("progress")) == 6
    assert parts["training"] + parts["data_wait"] < stopwatch.seconds["trainings"]
    assert parts["shutdown"] > 0.6


def test_a_fault_of_the_hook_is_one_warning_and_the_training_goes_on(hf, capsys):
    """Where no recorder can be made, training ends as ever."""
    from ett_trainer_hooks.adapters.process import Process

    def broken(_environ):
        raise OSError("no such device")

    trainer = hf.trainer(hf.Model(), hf.Callback(process=Process(broken)), max_steps=3)
    trainer.train()
    assert trainer.state.global_step == 3
    assert capsys.readouterr().err.count("no such device") == 1
