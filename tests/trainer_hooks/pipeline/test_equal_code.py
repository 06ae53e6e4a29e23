"""A model whose code was made beside the start learns what it learns with code made in its first step."""

from __future__ import annotations

import json

import pytest

PROGRAM = """
import json, threading
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.batch_spec import Dense
from ett_trainer_hooks.pipeline.fast_batch import FastBatch
from ett_trainer_hooks.pipeline.toolchain import trust_processor

trust_processor()
import torch

recorder = Recorder.from_env()
batch = {"numbers": torch.randn(8, 3, generator=torch.Generator().manual_seed(1))}


def loss_of(parts, batch):
    return parts["all"](batch["numbers"]).square().mean()


def losses(rehearsed):
    torch.compiler.reset()
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Dropout(0.5))
    model.compile()
    fast = FastBatch({"numbers": Dense((8, 3))}, loss_of, recorder)
    if rehearsed:
        thread = threading.Thread(target=fast.rehearse, args=({"all": model},))
        thread.start()
        thread.join()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    found = []
    for each in recorder.batches(fast.checked([batch] * 4)):
        loss = loss_of({"all": model}, each)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(float(loss.detach()))
    return found


print(json.dumps([losses(rehearsed=False), losses(rehearsed=True)]))
recorder.close()
"""


@pytest.mark.service("torch")
@pytest.mark.service("compiler")
def test_a_rehearsal_leaves_the_losses_as_they_are(start, tmp_path):
    """To the last digit, dropout included: torch's generators stand where they would have stood."""
    made = start(
        PROGRAM,
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"),
        TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS="0",
        TMPDIR=str(tmp_path),
        OMP_NUM_THREADS="1",
    )
    out, err = made.communicate(timeout=300)
    assert made.returncode == 0, err.decode()
    plain, rehearsed = json.loads(out.splitlines()[-1])
    assert len(set(plain)) == 4
    assert rehearsed == plain
