"""torchtitan's structured logger, the real one, driven in the order in which its trainer drives it."""

from __future__ import annotations

import contextvars
import logging
import os
import subprocess
import sys
import threading
import time

import pytest

from ett_core.accounting import JobFold

sl = pytest.importorskip("torchtitan.observability.structured_logger")
adapter = pytest.importorskip("ett_trainer_hooks.adapters.torchtitan")

pytestmark = [pytest.mark.service("torch"), pytest.mark.service("torchtitan")]


class DataloaderExhaustedError(Exception):
    """The name that torchtitan's trainer gives to the end of its data."""


@pytest.fixture
def attached(observer):
    """The observer, attached to the logger for the length of a test."""
    logger = logging.getLogger(adapter.LOGGER)
    level = logger.level
    adapter.attach(observer.recorder)
    yield observer
    for handler in [each for each in logger.handlers if isinstance(each, adapter.SpanHandler)]:
        logger.removeHandler(handler)
    logger.setLevel(level)


class Trainer:
    """The spans of `torchtitan.trainer.Trainer`, in its order; what it does inside is up to a test.

    `saves` and `evaluates` are the steps after which it does so; `broken` maps a span and a step to
    what is raised in it.
    """

    def __init__(self, *, steps, saves=(), evaluates=(), broken=None, inside=lambda _span: None):
        self.steps, self.saves, self.evaluates = steps, saves, evaluates
        self.broken = broken or {}
        self.inside = inside
        self.step = 0

    def do(self, span):
        with sl.log_trace_span(span):
            self.inside(span)
            if (span, self.step) in self.broken:
                raise self.broken[span, self.step]

    def build(self):
        with sl.log_trace_span("Trainer.Config.build"):
            for span in (
                "torch_distributed_init",
                "Llama3Model.Config.build",
                "MetricsProcessor.Config.build",
                "model_parallelism_init",
                "HuggingFaceTextDataLoader.Config.build",
            ):
                self.do(span)

    def train(self, resumed=0):
        sl.log_trace_instant("training_start")
        self.do("checkpoint_load")
        self.step = resumed
        while self.step < self.steps:
            self.step += 1
            sl.set_step(self.step, relative_step=self.step - resumed)
            with sl.log_trace_span("step"):
                self.do("gc_collect")
                try:
                    self.train_step()
                except DataloaderExhaustedError:
                    break
                self.save()
                if self.step in self.evaluates:
                    sl.add_step_tag("eval")
                    self.do("eval")

    def train_step(self):
        self.do("fetching_batch")
        sl.log_trace_scalar({"local_valid_tokens": 128})
        self.do("post_dataloading_process")
        self.do("fwd_bwd")
        self.do("optim")

    def save(self):
        with sl.log_trace_span("checkpoint_save"):
            if self.step not in self.saves:
                return
            sl.add_step_tag("checkpoint_save")
            self.inside("checkpoint_save")
            if ("checkpoint_save", self.step) in self.broken:
                raise self.broken["checkpoint_save", self.step]


def run(trainer, resumed=0):
    """Run a trainer as torchtitan's `main` does, in a context of its own."""

    def main():
        trainer.build()
        trainer.train(resumed)
        trainer.do("torch_distributed_teardown")

    contextvars.copy_context().run(main)


def test_a_run_becomes_phases_steps_and_saves(attached):
    """Initialisation, first batch, steps, saves at their steps only, evaluations, the end."""
    run(Trainer(steps=6, saves={2, 4, 6}, evaluates={3}))
    assert attached.phases() == [
        "model_init",
        "process_group",
        "init_plugins",
        "preproc_creation",
        "checkpoint_load",
        "data_warmup",
        "checkpoint",
        "evaluation",
        "checkpoint",
        "checkpoint",
        "shutdown",
    ]
    assert [event.step for event in attached.of("progress")] == [1, 2, 3, 4, 5, 6]
    assert [event.steps for event in attached.of("progress")] == [1] * 6
    [first] = attached.of("first_batch")
    assert first.step == 0
    assert [event.step for event in attached.of("checkpoint")] == [2, 4, 6]
    assert attached.warnings == []


def test_a_save_is_durable_when_the_next_one_is_over(attached):
    """Torchtitan waits for one save before the next; of the last nobody knows."""
    run(Trainer(steps=6, saves={2, 4, 6}))
    assert [event.step for event in attached.of("checkpoint_durable")] == [2, 4]
    kinds = [(e.kind, e.step) for e in attached.told() if e.kind in ("checkpoint", "checkpoint_durable")]
    assert kinds[:3] == [("checkpoint", 2), ("checkpoint", 4), ("checkpoint_durable", 2)]


def test_a_save_that_fails_is_told_and_nothing_becomes_durable(attached):
    """The exception passes; neither this save nor the one before it is known to be durable."""
    disk = OSError("No space left on device")
    with pytest.raises(OSError, match="No space") as raised:
        run(Trainer(steps=6, saves={2, 4}, broken={("checkpoint_save", 4): disk}))
    assert raised.value is disk
    [failed] = attached.of("checkpoint_failed")
    assert (failed.step, failed.message) == (4, "OSError: No space left on device")
    assert attached.of("checkpoint_durable") == []
    assert [event.step for event in attached.of("checkpoint")] == [2]


def test_steps_are_numbered_from_where_training_resumed(attached):
    """The relative step of torchtitan tells what was loaded."""
    run(Trainer(steps=103), resumed=100)
    assert [event.step for event in attached.of("first_batch")] == [100]
    assert [event.step for event in attached.of("progress")] == [101, 102, 103]


def test_time_in_spans_goes_where_it_belongs(attached):
    """Real time: fetching is data wait, saves and evaluations have phases, a step is what is left."""
    costs_s = {"fetching_batch": 0.02, "fwd_bwd": 0.01, "checkpoint_save": 0.05, "eval": 0.04}
    spent_s = {span: [] for span in costs_s}
    pause = threading.Event()

    def inside(span):
        began_s = time.monotonic()
        if span in costs_s:
            pause.wait(costs_s[span])
            spent_s[span].append(time.monotonic() - began_s)

    run(Trainer(steps=8, saves={4}, evaluates={6}, inside=inside))
    attached.recorder.close()
    fold = JobFold("job")
    fold.add(attached.told())
    account = fold.account(0.0)
    parts = account.components
    assert sum(parts.values()) == pytest.approx(account.wall_s, abs=1e-6)
    first_s, *waits_s = spent_s["fetching_batch"]
    assert parts["start.data_warmup"] == pytest.approx(first_s, abs=0.03)
    assert parts["data_wait"] == pytest.approx(sum(waits_s), rel=0.2, abs=0.03)
    assert parts["checkpoint_blocking"] == pytest.approx(sum(spent_s["checkpoint_save"]), rel=0.2, abs=0.03)
    assert parts["evaluation"] == pytest.approx(sum(spent_s["eval"]), rel=0.2, abs=0.03)
    assert parts["training"] == pytest.approx(sum(spent_s["fwd_bwd"]), rel=0.5, abs=0.05)


def test_a_step_that_found_no_batch_is_none(attached):
    """Torchtitan cancels it and ends well; the steps before it stand."""
    run(Trainer(steps=9, broken={("fetching_batch", 4): DataloaderExhaustedError()}))
    assert [event.step for event in attached.of("progress")] == [1, 2, 3]
    assert attached.of("checkpoint_failed") == []


@pytest.mark.parametrize("span", ["fwd_bwd", "optim", "fetching_batch"])
def test_a_step_that_fails_is_not_counted_and_its_exception_passes(attached, span):
    """The program sees what was raised; the trainer's spans close."""
    error = RuntimeError("CUDA out of memory")
    with pytest.raises(RuntimeError) as raised:
        run(Trainer(steps=9, broken={(span, 3): error}))
    assert raised.value is error
    assert [event.step for event in attached.of("progress")] == [1, 2]


def test_what_fails_before_the_loop_ends_its_phase_with_the_error(attached):
    """The innermost phase and those around it say why."""
    with pytest.raises(RuntimeError):
        run(Trainer(steps=9, broken={("torch_distributed_init", 0): RuntimeError("no peers")}))
    ends = [(event.phase, event.error) for event in attached.of("phase_end")]
    assert ends == [("process_group", "RuntimeError: no peers"), ("model_init", "RuntimeError: no peers")]


def test_a_span_around_the_steps_takes_nothing_from_them(attached):
    """A span of the user's own that holds the loop is a phase only until the first step."""

    def main():
        with sl.log_trace_span("epoch"):
            Trainer(steps=2).train()

    contextvars.copy_context().run(main)
    told = [(e.kind, e.phase) for e in attached.told() if e.kind.startswith("phase")]
    assert told[:4] == [
        ("phase_begin", "epoch"),
        ("phase_begin", "checkpoint_load"),
        ("phase_end", "checkpoint_load"),
        ("phase_end", "epoch"),
    ]
    assert [event.step for event in attached.of("progress")] == [1, 2]


def test_other_threads_are_left_out(attached):
    """A loader that logs spans from its own thread does not disturb the steps."""

    def noise():
        with sl.log_trace_span("step"), sl.log_trace_span("checkpoint_load"):
            pass

    def inside(span):
        if span == "fwd_bwd":
            thread = threading.Thread(target=noise)
            thread.start()
            thread.join()

    run(Trainer(steps=3, inside=inside))
    assert [event.step for event in attached.of("progress")] == [1, 2, 3]
    assert attached.phases().count("checkpoint_load") == 1


def test_plain_text_and_strange_spans_do_no_harm(attached):
    """Records without torchtitan's fields, and an end without a begin, are passed over."""
    logging.getLogger(adapter.LOGGER).info("plain text")
    span = sl.log_trace_span("optim")
    span.__exit__(None, None, None)
    run(Trainer(steps=2))
    assert [event.step for event in attached.of("progress")] == [1, 2]
    assert attached.recorder.guard.faults == 0


def test_a_fault_in_the_recorder_never_reaches_the_trainer(attached, monkeypatch):
    """The trainer runs to its end; one warning says what failed."""
    monkeypatch.setattr(attached.recorder, "step_done", lambda **_: 1 / 0)
    trainer = Trainer(steps=3, saves={1, 2})
    run(trainer)
    assert trainer.step == 3
    assert len(attached.warnings) == 1


def test_attaching_twice_tells_once(attached):
    """The later handler takes the place of the earlier one."""
    adapter.attach(attached.recorder)
    handlers = logging.getLogger(adapter.LOGGER).handlers
    assert len([each for each in handlers if isinstance(each, adapter.SpanHandler)]) == 1
    run(Trainer(steps=2))
    assert [event.step for event in attached.of("progress")] == [1, 2]


def test_with_hooks_off_the_factory_leaves_the_logger_alone(monkeypatch):
    """Off costs nothing."""
    monkeypatch.setenv("ETT_DISABLED", "1")
    handlers = list(logging.getLogger(adapter.LOGGER).handlers)
    adapter.register(structured_logger=None, rank=0, source="training", output_dir=".")
    assert logging.getLogger(adapter.LOGGER).handlers == handlers


def test_torchtitan_itself_attaches_by_a_variable(tmp_path, trainer_env, events_in):
    """Nothing in the code: the handler factory is named in the environment, beside torchtitan's own."""
    factories = "torchtitan.observability.structured_logger.jsonl_handler.register_jsonl_handler"
    environ = {
        **trainer_env,
        "TITAN_STRUCT_LOGGER_HANDLERS": f"ett_trainer_hooks.adapters.torchtitan.register,{factories}",
    }
    program = (
        "from torchtitan.observability import structured_logger as sl\n"
        "sl.init_structured_logger(source='training', output_dir='out')\n"
        "for step in (1, 2, 3):\n"
        "    sl.set_step(step)\n"
        "    with sl.log_trace_span('step'):\n"
        "        with sl.log_trace_span('fetching_batch'):\n"
        "            pass\n"
        "with sl.log_trace_span('torch_distributed_teardown'):\n"
        "    pass\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=environ, cwd=tmp_path, timeout=60)
    events = events_in(tmp_path / "journal")
    assert events[-1].kind == "attempt_end"
    assert events[-1].status == "succeeded"
    assert [event.step for event in events if event.kind == "progress"][-1] == 3
    assert len(os.listdir(tmp_path / "out" / "structured_logs")) == 1  # noqa: PTH208 - names are enough
