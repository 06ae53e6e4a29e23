"""What a callback costs a batch of Lightning and a step of the Hugging Face Trainer, in CPU time.

    python benchmarks/hooks/frameworks.py [--runs 9] [--batches 400]

Next to no callback, an empty one and ours with the hooks off. Trainings of a tiny model take turns,
the minimum of the runs counts; it is CPU time of the thread that trains, so that a busy machine
disturbs it least.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import lightning.pytorch as pl
import torch
import transformers

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters import huggingface, lightning
from ett_trainer_hooks.adapters.process import Process

Train = Callable[..., float]


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.01)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, numbers: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.layer(numbers) - labels).square().mean()}


def lightning_batch_s(batches: int, *callbacks: pl.Callback) -> float:
    """CPU seconds of a batch."""
    reached: list[float] = []

    class Clock(pl.Callback):
        def on_train_batch_end(self, *_: object) -> None:
            reached.append(time.thread_time())

    data = torch.utils.data.TensorDataset(torch.randn(4 * batches, 4))
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[*callbacks, Clock()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4))
    return (reached[-1] - reached[0]) / (len(reached) - 1)


def huggingface_step_s(steps: int, *callbacks: transformers.TrainerCallback) -> float:
    """CPU seconds of a step."""
    reached: list[float] = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            reached.append(time.thread_time())

    rows = [{"numbers": torch.ones(4), "labels": torch.ones(1)}] * (4 * steps)
    with tempfile.TemporaryDirectory() as place:
        settings = transformers.TrainingArguments(
            output_dir=place,
            max_steps=steps,
            per_device_train_batch_size=4,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        callbacks = (*callbacks, Clock())
        transformers.Trainer(Model(), settings, train_dataset=rows, callbacks=list(callbacks)).train()
    return (reached[-1] - reached[0]) / (len(reached) - 1)


def compare(train: Train, empty: type, ours: Callable[..., object], on: Process, runs: int) -> None:
    """Print the minima, in microseconds."""
    makers: dict[str, Callable[[], list[object]]] = {
        "no callback": list,
        "an empty callback": lambda: [empty()],
        "ours, hooks off": lambda: [ours(process=Process(environ={}))],
        "ours": lambda: [ours(process=on)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    train()
    for _ in range(runs):
        for name, make in makers.items():
            seconds[name].append(train(*make()))
    for name, each in seconds.items():
        print(f"  {name:20} {min(each) * 1e6:8.1f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--batches", type=int, default=400)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as place:
        environ = {"ETT_JOB_ID": "benchmark", "ETT_JOURNAL_DIR": str(Path(place))}
        on = Process(Recorder.from_env, environ)

        def lit(*callbacks: pl.Callback) -> float:
            return lightning_batch_s(arguments.batches, *callbacks)

        def hf(*callbacks: transformers.TrainerCallback) -> float:
            return huggingface_step_s(arguments.batches, *callbacks)

        print("Lightning, a batch")
        compare(lit, pl.Callback, lightning.ETTCallback, on, arguments.runs)
        callback = transformers.TrainerCallback
        print("Hugging Face, a step")
        compare(hf, callback, huggingface.ETTCallback, on, arguments.runs)


if __name__ == "__main__":
    main()
