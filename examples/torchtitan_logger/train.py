"""A loop with the spans of torchtitan's structured logger: one call tells them to ettwatch as well.

    ett run -- python train.py
    ett account DIR      # DIR as printed by ett run

torchtitan's own trainer needs no line of code: see docs/torchtitan.md. Without `ett run` the same
program trains and logs as ever.
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from torchtitan.observability import structured_logger as sl

from ett_trainer_hooks import Recorder  # line 0: the imports
from ett_trainer_hooks.adapters import torchtitan

WIDTH = 64


@sl.log_trace_span("model_parallelism_init")
def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.003)


@sl.log_trace_span("eval")
def evaluate(model: torch.nn.Module) -> float:
    sl.add_step_tag("eval")
    with torch.no_grad():
        inputs = torch.randn(512, WIDTH, generator=torch.Generator().manual_seed(1))
        return float((model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean())


@sl.log_trace_span("checkpoint_save")
def save(model: torch.nn.Module, step: int, folder: str) -> None:
    if step % 50 == 0:
        sl.add_step_tag("checkpoint_save")
        torch.save(model.state_dict(), f"{folder}/step_{step}.pt")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(dir=".", prefix="out-")
    sl.init_structured_logger(source="training", output_dir=folder)
    recorder = Recorder.from_env()  # line 1
    torchtitan.attach(recorder)  # line 2
    model, optimizer = build()
    draw = torch.Generator().manual_seed(7)
    for step in range(1, arguments.steps + 1):
        sl.set_step(step)
        with sl.log_trace_span("step"):
            with sl.log_trace_span("fetching_batch"):
                inputs = torch.randn(64, WIDTH, generator=draw)
            with sl.log_trace_span("fwd_bwd"):
                optimizer.zero_grad()
                (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean().backward()
            with sl.log_trace_span("optim"):
                optimizer.step()
            save(model, step, folder)
            if step % 100 == 0:
                print(f"{recorder.step} steps, loss {evaluate(model):.4f}")
    recorder.close()  # says that it ended well; `ett run` finds out by itself


if __name__ == "__main__":
    main()
