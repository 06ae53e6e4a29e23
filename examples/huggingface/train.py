"""A tiny language model that learns to count, trained by the Trainer of transformers with one callback.

    ett run -- python examples/huggingface/train.py
    ett account DIR      # DIR as printed by ett run

Run again with the same `--saves` it goes on from the last checkpoint. Without `ett run` the same
program trains as ever and writes no events. Nothing is downloaded: the weights start at random.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from ett_trainer_hooks.adapters.huggingface import ETTCallback

WORDS, LENGTH = 64, 16


class Counting(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Rows of numbers, each one more than the one before."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = (torch.arange(LENGTH) + index) % WORDS
        return {"input_ids": row, "labels": row}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--saves", default="saves", help="directory of the checkpoints")
    arguments = parser.parse_args()
    Path(arguments.saves).mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    settings = TrainingArguments(
        output_dir=arguments.saves,
        max_steps=arguments.steps,
        per_device_train_batch_size=16,
        learning_rate=0.01,
        logging_steps=40,
        eval_strategy="steps",
        eval_steps=40,
        save_steps=40,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=settings,
        train_dataset=Counting(640),
        eval_dataset=Counting(128),
        callbacks=[ETTCallback()],  # the one line
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(arguments.saves))
    print(f"{trainer.state.global_step} steps, loss {trainer.evaluate()['eval_loss']:.4f}")


if __name__ == "__main__":
    main()
