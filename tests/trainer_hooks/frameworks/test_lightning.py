"""Lightning's real trainer, observed by its callback."""

from __future__ import annotations

import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.service("lightning"), pytest.mark.filterwarnings("ignore")]

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@pytest.fixture
def lit(stopwatch, spend):  # noqa: C901 - classes of a framework that is imported here
    """Lightning, and a module and data that measure what they do."""
    import lightning.pytorch as pl
    import torch

    from ett_trainer_hooks.adapters.lightning import ETTCallback

    class Data(torch.utils.data.Dataset):
        def __init__(self, name, seconds=0.0, size=32):
            self.name, self.seconds, self.size = name, seconds, size

        def __len__(self):
            return self.size

        def __getitem__(self, index):
            with stopwatch.of(self.name):
                spend(self.seconds)
                return torch.full((4,), index / 40), torch.ones(1)

    class Module(pl.LightningModule):
        def __init__(self, seconds=0.0):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 1)
            self.seconds = seconds
            self.batch_size = 4
            self.lr = 0.01
            self.losses = []

        def training_step(self, batch, _index):
            with stopwatch.of("training"):
                spend(self.seconds)
                loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
            self.losses.append(loss.item())
            return loss

        def validation_step(self, _batch, _index):
            if not self.trainer.sanity_checking:
                with stopwatch.of("evaluation"):
                    spend(self.seconds)

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), self.lr)

        def train_dataloader(self):
            return torch.utils.data.DataLoader(Data("own"), batch_size=self.batch_size)

        val_dataloader = train_dataloader

    def loader(name, seconds=0.0, size=32):
        return torch.utils.data.DataLoader(Data(name, seconds, size), batch_size=4)

    def trainer(where, *callbacks, **settings):
        return pl.Trainer(default_root_dir=where, callbacks=list(callbacks), **{**QUIET, **settings})

    def saver(where, every=1, **settings):
        return pl.callbacks.ModelCheckpoint(where, every_n_train_steps=every, save_top_k=-1, **settings)

    return SimpleNamespace(
        pl=pl, torch=torch, Callback=ETTCallback, Module=Module, loader=loader, trainer=trainer, saver=saver
    )


def test_the_parts_are_what_the_program_measured_itself(lit, played, loop, saves):
    """Waits, evaluations and training agree with a stopwatch in the module and the data; steps add up."""

    class Measure(lit.pl.Callback):
        def on_train_batch_start(self, *_):
            loop.first_batch()

        def on_train_end(self, *_):
            loop.end()

    told = played()
    callbacks = [lit.Callback(samples=lambda batch: len(batch[0]), process=told.process), Measure()]
    callbacks.append(lit.saver(saves, every=2))
    trainer = lit.trainer(saves, *callbacks, max_epochs=2, accumulate_grad_batches=2)
    trainer.fit(lit.Module(0.01), lit.loader("wait", 0.002), lit.loader("validation"))
    told.process.leave()
    parts = told.account().components
    assert told.account().state == "succeeded"
    loop.agrees(wait=parts["data_wait"], evaluation=parts["evaluation"], training=parts["training"])
    assert told.phases()[:4] == ["model_init", "data_warmup", "sanity_check", "checkpoint"]
    assert [told.phases().count(name) for name in ("evaluation", "checkpoint", "shutdown")] == [2, 4, 1]
    progress = told.of("progress")
    assert (progress[-1].step, sum(each.steps for each in progress)) == (trainer.global_step, 8)
    assert sum(each.samples for each in progress) == 64
    durable = told.of("checkpoint_durable")
    assert [event.step for event in durable] == [2, 4, 6, 8]
    assert durable[0].bytes == next(saves.glob("*step=2.ckpt")).stat().st_size
    assert [event.step for event in told.of("first_batch")] == [0]


def test_what_is_learned_is_the_same_and_the_trainer_is_left_as_it_was(lit, played, saves):
    """The same losses to the last bit; afterwards no method of the trainer is ours."""

    def losses(*callbacks):
        module = lit.Module()
        trainer = lit.trainer(saves, *callbacks, max_epochs=2, enable_checkpointing=False)
        trainer.fit(module, lit.loader("wait"), lit.loader("validation"))
        return module.losses, trainer

    alone, _ = losses()
    observed, trainer = losses(lit.Callback(process=played().process))
    assert observed == alone
    assert not {"save_checkpoint"} & vars(trainer).keys()
    assert not {"load_checkpoint", "load_optimizer_state_dict"} & vars(trainer.strategy).keys()
    assert not {"start", "stop"} & vars(trainer.profiler).keys()


def test_without_a_job_nothing_is_put_around_anything(lit, saves):
    """With no journal asked for the trainer keeps its own methods throughout."""
    from ett_trainer_hooks.adapters.process import Process

    seen = []

    class Look(lit.pl.Callback):
        def on_train_batch_end(self, trainer, *_):
            seen.append(
                {"save_checkpoint"} & vars(trainer).keys() | {"start"} & vars(trainer.profiler).keys()
            )

    callback = lit.Callback(process=Process(environ={}))
    lit.trainer(saves, callback, Look(), max_steps=2).fit(lit.Module(), lit.loader("wait"))
    assert seen == [set(), set()]


def test_a_resumed_trainer_says_from_where_and_what_was_lost(lit, played, saves):
    """The second attempt loads step 6; two steps of the first, which failed at 8, were in vain."""
    reached_s = {}

    class Break(lit.pl.Callback):
        def on_train_batch_end(self, trainer, *_):
            reached_s[trainer.global_step] = time.monotonic()
            if trainer.global_step == 8:
                raise RuntimeError("a broken link")

    first = played()
    callbacks = [lit.Callback(process=first.process), Break(), lit.saver(saves, every=3)]
    with pytest.raises(RuntimeError, match="a broken link"):
        lit.trainer(saves, *callbacks, max_epochs=2).fit(lit.Module(0.01), lit.loader("wait", size=64))
    assert [event.exception for event in first.of("failure")] == ["RuntimeError"]
    second = played()
    trainer = lit.trainer(saves, lit.Callback(process=second.process), max_epochs=1)
    path = next(saves.glob("*step=6.ckpt"))
    trainer.fit(lit.Module(0.01), lit.loader("wait", size=64), ckpt_path=path)
    second.process.leave()
    account = second.account()
    assert [event.step for event in second.of("first_batch")] == [0, 6]
    loads = [event for event in second.events if event.kind == "phase_begin" and event.attempt == 1]
    assert [event.phase for event in loads].count("checkpoint_load") == 3
    assert (account.state, len(account.failures)) == ("succeeded", 1)
    assert 0.019 < account.components["unsaved_training"] < reached_s[8] - reached_s[6] + 0.01
    assert account.components["recover.checkpoint_load"] > 0


def test_two_fits_in_one_process_are_one_attempt(lit, played, stopwatch, saves, spend):
    """One writer; what happens between them is neither training nor waiting."""
    told = played()
    for _ in range(2):
        callback = lit.Callback(process=told.process)
        trainer = lit.trainer(saves, callback, max_steps=3, enable_checkpointing=False)
        with stopwatch.of("fits"):
            trainer.fit(lit.Module(0.001), lit.loader("wait"))
        spend(0.3)
    trainer.test(lit.Module(), lit.loader("test"), verbose=False)
    told.process.leave()
    parts = told.account().components
    assert len({event.writer for event in told.events}) == 1
    assert sum(event.steps for event in told.of("progress")) == 6
    assert told.of("progress")[-1].step == 3
    assert parts["training"] + parts["data_wait"] < stopwatch.seconds["fits"]
    assert parts["shutdown"] > 0.6
    assert told.phases()[-1] == "evaluation"


def test_searches_for_a_batch_size_and_a_learning_rate_are_no_training(lit, played, saves):
    """Their steps are not counted, their temporary checkpoints are none, their time has a name."""
    told = played()
    trainer = lit.trainer(saves, lit.Callback(process=told.process), max_steps=4, enable_checkpointing=False)
    module = lit.Module()
    tuner = lit.pl.tuner.Tuner(trainer)
    tuner.scale_batch_size(module, max_trials=2, init_val=2)
    tuner.lr_find(module, num_training=5)
    assert told.of("progress") == told.of("first_batch") == told.of("checkpoint") == []
    trainer.fit(module)
    told.process.leave()
    assert told.phases().count("tuning") == 2
    assert sum(event.steps for event in told.of("progress")) == 4
    assert told.account().state == "succeeded"


def test_an_asynchronous_save_is_durable_when_its_file_is_there(lit, played, saves):
    """The thread that writes says so, with the step of the checkpoint; the trainer was blocked for less."""
    from lightning.pytorch.plugins.io import AsyncCheckpointIO

    told = played()
    callbacks = [lit.Callback(process=told.process), lit.saver(saves, every=2)]
    trainer = lit.trainer(saves, *callbacks, max_steps=4, plugins=[AsyncCheckpointIO()])
    trainer.fit(lit.Module(), lit.loader("wait"))
    assert [(event.step, event.mode) for event in told.of("checkpoint_durable")] == [
        (2, "async"),
        (4, "async"),
    ]
    assert [(event.step, event.mode) for event in told.of("checkpoint")] == [(2, "async"), (4, "async")]
    assert [event.bytes for event in told.of("checkpoint_durable")] == [
        next(saves.glob(f"*step={step}.ckpt")).stat().st_size for step in (2, 4)
    ]


def test_a_file_of_the_programs_own_is_written_as_without_us(lit, played, saves, tmp_path, capsys):
    """Beside asynchronous saves, from a thread of the program: it holds no step, and is not told."""
    from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO

    told, own = played(), tmp_path / "own.ckpt"

    class Own(lit.pl.Callback):
        def on_train_end(self, *_):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(TorchCheckpointIO().save_checkpoint, {"optimizer_states": []}, own).result()

    callbacks = [lit.Callback(process=told.process), Own()]
    trainer = lit.trainer(saves, *callbacks, max_steps=2, plugins=[AsyncCheckpointIO()])
    trainer.fit(lit.Module(), lit.loader("wait"))
    assert own.is_file()
    assert [event.step for event in told.of("checkpoint_durable")] == [2]
    assert told.of("checkpoint_failed") == []
    assert "ettwatch" not in capsys.readouterr().err


def test_a_checkpoint_of_weights_alone_is_nothing_to_resume_from(lit, played, saves):
    """It blocks the trainer, and is not called durable."""
    told = played()
    callbacks = [lit.Callback(process=told.process), lit.saver(saves, every=2, save_weights_only=True)]
    lit.trainer(saves, *callbacks, max_steps=2).fit(lit.Module(), lit.loader("wait"))
    assert [event.step for event in told.of("checkpoint")] == [2]
    assert told.of("checkpoint_durable") == []


def test_early_stopping_is_a_success(lit, played, saves):
    """A trainer that stops because nothing gets better any more ends well."""
    told = played()

    class Module(lit.Module):
        def validation_step(self, _batch, _index):
            self.log("quality", 1.0)

    stop = lit.pl.callbacks.EarlyStopping("quality", patience=1)
    trainer = lit.trainer(saves, lit.Callback(process=told.process), stop, max_epochs=9)
    trainer.fit(Module(), lit.loader("wait"), lit.loader("validation"))
    told.process.leave()
    assert trainer.current_epoch < 9
    assert [event.status for event in told.of("attempt_end")] == ["succeeded"]


def test_ctrl_c_is_a_decision_and_no_failure(lit, played, saves):
    """Lightning exits by itself then; the attempt ends as cancelled."""

    class Interrupt(lit.pl.Callback):
        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step == 2:
                raise KeyboardInterrupt

    told = played()
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit):
            lit.trainer(saves, lit.Callback(process=told.process), Interrupt(), max_steps=4).fit(
                lit.Module(), lit.loader("wait")
            )
    finally:
        signal.signal(signal.SIGINT, before)
    told.process.leave()
    assert told.account().state == "cancelled"
    assert told.account().failures == []


def test_sigterm_lets_the_trainer_stop_as_it_does_and_ends_as_preempted(lit, played, saves):
    """Lightning finishes the batch and raises; it is told who stopped it."""

    class Stop(lit.pl.Callback):
        def on_train_batch_start(self, trainer, *_):
            if trainer.global_step == 2:
                signal.raise_signal(signal.SIGTERM)

    told = played()
    trainer = lit.trainer(saves, lit.Callback(process=told.process), Stop(), max_steps=9)
    with pytest.raises(SystemExit):
        trainer.fit(lit.Module(), lit.loader("wait"))
    told.process.leave()
    assert trainer.global_step == 3
    assert [event.status for event in told.of("attempt_end")] == ["preempted"]


def test_steps_are_those_that_lightning_counts(lit, played, saves):
    """With two optimizers by hand each batch is two steps, as in the numbers of the checkpoints."""

    class ByHand(lit.Module):
        automatic_optimization = False

        def training_step(self, batch, _index):
            for optimizer in self.optimizers():
                loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
                optimizer.zero_grad()
                self.manual_backward(loss)
                optimizer.step()

        def configure_optimizers(self):
            return [lit.torch.optim.SGD(self.parameters(), 0.01) for _ in range(2)]

    told = played()
    callbacks = [lit.Callback(process=told.process), lit.saver(saves, every=2)]
    trainer = lit.trainer(saves, *callbacks, max_epochs=1)
    trainer.fit(ByHand(), lit.loader("wait"))
    assert told.of("progress")[-1].step == trainer.global_step == 16
    assert told.of("checkpoint_durable")[-1].step == 16


def test_a_fault_of_the_hook_is_one_warning_and_the_training_goes_on(lit, played, saves, capsys):
    """A function for the samples that raises costs what it would have said."""
    told = played()
    callback = lit.Callback(samples=lambda _: 1 / 0, process=told.process)
    trainer = lit.trainer(saves, callback, max_steps=3, enable_checkpointing=False)
    trainer.fit(lit.Module(), lit.loader("wait"))
    assert trainer.global_step == 3
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1
    assert sum(event.steps for event in told.of("progress")) == 3


def test_a_callback_goes_along_to_another_process_without_what_runs(lit, played):
    """Lightning pickles callbacks for the ranks that it spawns."""
    callback = lit.Callback(samples=8, process=played().process)
    again = pickle.loads(pickle.dumps(callback))  # noqa: S301 - our own
    assert (again._samples, again._run) == (8, None)
