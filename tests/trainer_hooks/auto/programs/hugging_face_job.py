"""A job of the Hugging Face Trainer with a tiny model, without a network; prints what its own clock says."""

import json
import sys
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

spent = {"steps": 0.0, "evaluation": 0.0, "train": 0.0}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, features, labels):
        time.sleep(0.03 if self.training else 0.05)
        predicted = self.layer(features)
        return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Clock(TrainerCallback):
    def on_step_begin(self, *_, **__):
        self.began = time.perf_counter()

    def on_step_end(self, *_, **__):
        spent["steps"] += time.perf_counter() - self.began


class Timed(Trainer):
    def evaluate(self, *args, **kwargs):
        began = time.perf_counter()
        found = super().evaluate(*args, **kwargs)
        spent["evaluation"] += time.perf_counter() - began
        return found


def data(rows, seed):
    torch.manual_seed(seed)
    return [{"features": torch.randn(8), "labels": torch.randn(1)} for _ in range(rows)]


arguments = TrainingArguments(
    output_dir=sys.argv[1],
    num_train_epochs=2,
    per_device_train_batch_size=4,
    per_device_eval_batch_size=4,
    gradient_accumulation_steps=2,
    eval_strategy="epoch",
    save_strategy="epoch",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Timed(
    model=Model(), args=arguments, train_dataset=data(80, 1), eval_dataset=data(32, 2), callbacks=[Clock()]
)
began = time.perf_counter()
trainer.train()
spent["train"] = time.perf_counter() - began
print(json.dumps({"step": trainer.state.global_step, **spent}))
