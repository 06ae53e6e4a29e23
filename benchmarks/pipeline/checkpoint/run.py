"""How long a save holds up a TorchRec trainer: `dcp.save` beside the checkpointer in each of its modes.

In turns in the same processes, on the reference DLRM with sharded tables and fused optimizer. A turn
is a save, then steps of training; the save before is always over. Blocked: what the slowest rank
waits, in the call and in hooks of the steps after it. Turn: the save and the steps after it, less what
as many steps took just before.

    python benchmarks/pipeline/checkpoint/run.py --ranks 2 --rows 100000 --turns 7 --steps 8
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.reference import criteo, model
from ett_trainer_hooks.reference.settings import Settings

PLAIN = "dcp.save"
WAYS = (PLAIN, "sync", "async_thread", "async_process", "async_thread, no wait")
DEVICE = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = (arguments, folder)
        processes.spawn(rank_main, given, nprocs=arguments.ranks)
        measured = json.loads((Path(folder) / "measured").read_text())
    print(f"{measured['megabytes']:.0f} MB of state, {measured['step_s']:.3f} s a step without a save\n")
    print("| way | blocked, s | less than dcp.save, by turn | turn, s more than its steps |")
    print("|---|---|---|---|")
    plain = measured["blocked"][PLAIN]
    for way in WAYS:
        blocked = measured["blocked"][way]
        less = [100 * (1 - mine / theirs) for mine, theirs in zip(blocked, plain, strict=True)]
        ratio = "" if way == PLAIN else f"{spread(less, 1)} %"
        print(f"| {way} | {spread(blocked, 4)} | {ratio} | {spread(measured['turn'][way], 3)} |")


def spread(values: list[float], digits: int) -> str:
    low, middle, high = (
        f"{each:.{digits}f}" for each in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


class Trainer:
    """A rank with its model, and one checkpointer a way."""

    def __init__(self, rows: int, folder: Path) -> None:
        settings = Settings(rows=rows, batch_size=64, compile=False)
        dlrm = model.build(settings, DEVICE)
        self.learner = model.shard(dlrm, model.plan_shards(dlrm, DEVICE), settings, DEVICE)
        signal = criteo.planted_signal(settings.seed, rows)
        samples = criteo.samples(signal, settings.seed, dist.get_rank(), 0, settings.batch_size)
        self.batch = model.as_batch(samples)
        self.folder = folder
        recorder = Recorder.from_env({})
        self.keepers = {
            way: Checkpointer(
                CheckpointStore(folder / way.replace(", ", "_")), recorder, mode=way.partition(",")[0]
            )
            for way in WAYS[1:]
        }
        self.joined_s = 0.0
        no_wait = self.keepers[WAYS[-1]]
        no_wait.no_wait(self.learner.model, self.learner.optimizer)
        copied = no_wait._deferral._copied  # noqa: SLF001 - to measure what hooks wait for
        copied.wait = self.timed(copied.wait)

    def timed(self, wait: Callable[[], bool]) -> Callable[[], bool]:
        def waited() -> bool:
            began_s = time.perf_counter()
            answer = wait()
            self.joined_s += time.perf_counter() - began_s
            return answer

        return waited

    def steps(self, count: int) -> float:
        """Seconds of so many steps."""
        began_s = time.perf_counter()
        for _ in range(count):
            self.learner.step(self.batch)
        return time.perf_counter() - began_s

    def save(self, way: str, turn: int) -> float:
        """Seconds until this rank goes on."""
        began_s = time.perf_counter()
        if way == PLAIN:
            dcp.save(self.learner.state(), checkpoint_id=self.folder / "plain" / f"step_{turn}")
        else:
            self.keepers[way].save(turn, self.learner.state())
        return time.perf_counter() - began_s

    def finish(self, way: str) -> None:
        """Wait until nothing goes on any more."""
        if way != PLAIN:
            self.keepers[way].wait()
        dist.barrier()
        if dist.get_rank() == 0:
            shutil.rmtree(self.folder / "plain", ignore_errors=True)
        dist.barrier()


def slowest(seconds: float) -> float:
    both = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return float(both)


def rank_main(rank: int, given: argparse.Namespace, folder: str) -> None:
    ranks, steps = given.ranks, given.steps
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.environ["LOCAL_RANK"] = str(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    trainer = Trainer(given.rows, Path(folder))
    found = {"blocked": {way: [] for way in WAYS}, "turn": {way: [] for way in WAYS}}
    trainer.steps(steps)
    for turn in range(given.turns + 1):
        for way in WAYS if turn % 2 else WAYS[::-1]:
            bare_s = slowest(trainer.steps(steps))
            dist.barrier()
            trainer.joined_s = 0.0
            called_s = trainer.save(way, turn)
            turn_s = slowest(called_s + trainer.steps(steps))
            blocked_s = slowest(called_s + trainer.joined_s)
            trainer.finish(way)
            if turn:  # the first one takes memory and starts processes
                found["blocked"][way].append(blocked_s)
                found["turn"][way].append(turn_s - bare_s)
    found["step_s"] = bare_s / steps
    found["megabytes"] = trainer.keepers["sync"].store.newest_intact().manifest.size / 1e6
    if rank == 0:
        (Path(folder) / "measured").write_text(json.dumps(found))
    for keeper in trainer.keepers.values():
        keeper.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
