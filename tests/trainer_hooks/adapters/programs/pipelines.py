"""A small DLRM trained by a plain loop and by TorchRec's pipelines; each way has a journal of its own.

Batches come slowly, so that waiting for them is seen. What is printed on rank 0 is one JSON object
a way: losses, the batches read ahead after each step, seconds that each batch took to come.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torchrec.distributed import TrainPipelineBase, TrainPipelineSparseDist

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters import dcp
from ett_trainer_hooks.adapters.torchrec import ObservedPipeline
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.reference import criteo, model
from ett_trainer_hooks.reference.settings import Settings

SETTINGS = Settings(rows=200, batch_size=32, compile=False)
STEPS = 12
SLOW_S = 0.01
DEVICE = torch.device("cpu")
PIPELINES = {"base": TrainPipelineBase, "sparse_dist": TrainPipelineSparseDist}


class SlowBatches:
    """An iterator that takes its time, and says how much for each batch."""

    def __init__(self) -> None:
        self.signal = criteo.planted_signal(SETTINGS.seed, SETTINGS.rows)
        self.step = 0
        self.spent_s = []

    def __iter__(self):
        return self

    def __next__(self):
        if self.step == STEPS:
            raise StopIteration
        began_s = time.monotonic()
        time.sleep(SLOW_S)
        samples = criteo.samples(self.signal, SETTINGS.seed, dist.get_rank(), self.step, SETTINGS.batch_size)
        self.step += 1
        batch = model.as_batch(samples)
        self.spent_s.append(time.monotonic() - began_s)
        return batch


def recorder_of(way: str, place: Path) -> tuple[Recorder, Journal]:
    rank = dist.get_rank()
    who = Identity(job_id=way, writer=f"{way}{rank}", rank=rank, world_size=dist.get_world_size())
    clock = Clock()
    journal = Journal(place / f"{way}{rank}-1.jsonl", who, clock=clock)
    recorder = Recorder(identity=who, journal=journal, clock=clock, report_every_s=1e-9)
    recorder.start()
    return recorder, journal


def learner():
    dlrm = model.build(SETTINGS, DEVICE)
    return model.shard(dlrm, model.plan_shards(dlrm, DEVICE), SETTINGS, DEVICE)


def is_restored(learning, recorder: Recorder, place: Path) -> bool:
    """Save the sharded state beside the training, spoil the tables, load: they are as they were."""
    stager = BlockingAsyncStager(cache_staged_state_dict=False)
    uploads = dist.new_group(backend="gloo")
    step, state = recorder.step, learning.state()
    dcp.async_save(
        recorder, state, step=step, checkpoint_id=place, process_group=uploads, async_stager=stager
    )
    dcp.wait(recorder)
    shards = [
        shard.tensor
        for value in state["model"].values()
        if isinstance(value, ShardedTensor)
        for shard in value.local_shards()
    ]
    before = [shard.clone() for shard in shards]
    for shard in shards:
        shard.zero_()
    dcp.load(recorder, state, checkpoint_id=place, step=step)
    return bool(shards) and all(torch.equal(*pair) for pair in zip(before, shards, strict=True))


def losses_of(way: str, recorder: Recorder, place: Path) -> dict[str, object]:
    torch.manual_seed(0)
    learning, batches = learner(), SlowBatches()
    if way == "plain":
        losses = [float(learning.step(batch)) for batch in recorder.batches(batches)]
        return {"losses": losses, "ahead": [], "spent_s": batches.spent_s}
    inner = PIPELINES[way](learning.model, learning.optimizer, DEVICE)
    pipeline = ObservedPipeline(recorder, inner, samples=lambda batch: len(batch.labels))
    losses, ahead = [], []
    try:
        while True:
            loss, *_ = pipeline.progress(batches)
            losses.append(float(loss.mean()))
            ahead.append(pipeline.prefetched)
    except StopIteration:
        pass
    restored = is_restored(learning, recorder, place)
    return {"losses": losses, "ahead": ahead, "spent_s": batches.spent_s, "restored": restored}


def main(place: Path, *ways: str) -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    for way in ways:
        recorder, journal = recorder_of(way, place)
        learned = losses_of(way, recorder, place / f"{way} saved")
        recorder.close()
        journal.close()
        if int(os.environ["RANK"]) == 0:
            print(json.dumps({"way": way, **learned}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
