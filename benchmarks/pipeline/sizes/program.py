"""One start of a job whose sizes vary: a bottom network compiled as it is, and a tower of a class of its own.

Batches come with a number of samples that varies, as the last of an epoch does, and with histories of any
length, as sequences of events have. Prints the seconds of its steps, and the sum of what they gave.
"""

import json
import sys
import time

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import dynamic_sources, profile

recorder = Recorder.from_env()
if "pgo" in sys.argv[1:]:
    profile.keep(recorder)
if "dynamic_sources" in sys.argv[1:]:
    dynamic_sources.leave_open(recorder)

import torch  # noqa: E402 - the parts set what torch reads at its import
from torch import nn  # noqa: E402

SIZES = ((256, 50), (256, 47), (200, 50), (131, 61))


class Tower(nn.Module):
    """Pools a history, and scores it beside dense features."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, history: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        """A score a sample; history is samples x events x 16, dense samples x 32."""
        pooled = torch.relu(self.embed(history)).mean(dim=1)
        return self.out(pooled * torch.sigmoid(dense))


torch.manual_seed(0)
bottom = torch.compile(nn.Sequential(nn.Linear(13, 32), nn.ReLU()))
tower = torch.compile(Tower())
began = time.perf_counter()
total = 0.0
with torch.no_grad():  # forward graphs alone: backward ones only double what is compiled
    for samples, events in recorder.batches(SIZES):
        history, features = torch.rand(samples, events, 16), torch.rand(samples, 13)
        total += tower(history, bottom(features)).square().mean().item()
took_s = time.perf_counter() - began
recorder.close("succeeded")
print(json.dumps({"steps_s": took_s, "outputs": total}))
