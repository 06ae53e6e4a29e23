"""Ranks that do nothing but save are killed at random instants, again and again, over one store.

    python kills.py FOLDER SEED KILLS MODE RANKS

MODE is one of the checkpointer, or `nodes`: each rank has a disk of its own before a place that all reach.
Prints a JSON list, for each kill: the step that was published before it, what a later start finds, and
whether that holds one step of all ranks. torch is imported once; the ranks of each run are forks of
this process.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.found import Found
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore

PATIENCE_S = 600.0
LONGEST_S = 0.3
"""Of the time between the first checkpoint of a run and its kill."""
SIZE = 200_000
LOOKS = {"async_process": "sync"}
"""What looks at what a mode has left, where it is not the same: one that starts no process."""


class Count:
    """A position in the data that each rank has for itself."""

    at = 0

    def state_dict(self):
        return self.at

    def load_state_dict(self, state):
        self.at = state


def state_of(ranks, value):
    """Tensors of every rank and one of all; `value` is what they are filled with."""
    return {"model": {name: torch.full((SIZE,), float(value)) for name in ("same", *ranks)}, "step": value}


def keeper_of(root: Path, mode: str, name: str) -> Checkpointer:
    """What saves to and loads from a place; `name` is whose disk it is."""
    if mode == "nodes":
        remote = RemoteStore(root.as_uri(), retention=Retention(last=2))
        return Checkpointer(NodeDisk(root.parent / name, remote), Recorder.from_env({}))
    return Checkpointer(CheckpointStore(root), Recorder.from_env({}), mode=mode)


def save_for_ever(root: Path, meeting: Path, mode: str, rank: int, ranks: int) -> None:
    """What a rank does: resume, check, and save one step after another."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    keeper = keeper_of(root, mode, f"disk_{rank}")
    state, count = state_of([f"w{rank}"], 0), Count()
    step = keeper.resume(state, own={"count": count})
    weights = state["model"].values()
    assert all(bool((tensor == step).all()) for tensor in weights), f"rank {rank} has not step {step}"
    assert (state["step"], count.at) == (step, step)
    while True:
        step += 1
        for tensor in weights:
            tensor.fill_(step)
        count.at = state["step"] = step
        keeper.save(step, state, own={"count": count})
        for tensor in weights:
            tensor.fill_(-1)  # training goes on: what is saved must not change
        count.at = -1


def check(keeper: Checkpointer, found: Found, ranks: int) -> None:
    """A checkpoint holds one step, of all ranks."""
    state = state_of([f"w{rank}" for rank in range(ranks)], 0)
    step = keeper.load(found, state)
    held = {name: tensor.unique().tolist() for name, tensor in state["model"].items()}
    assert set(map(tuple, held.values())) == {(float(step),)}, held
    assert state["step"] == step
    assert found.manifest.world_size == ranks


def forked(work, *given) -> int:
    """A child that does the work, and ends with 1 where it raises."""
    pid = os.fork()
    if pid == 0:
        try:
            work(*given)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - nothing of the child may run on
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    return pid


def published(root: Path) -> str:
    latest = root / "latest"
    return latest.read_text().strip() if latest.exists() else ""


def one_kill(root: Path, folder: Path, mode: str, ranks: int, chance: random.Random) -> dict[str, object]:
    before = published(root)
    meeting = folder / f"meeting{chance.random()}"
    pids = [forked(save_for_ever, root, meeting, mode, rank, ranks) for rank in range(ranks)]
    deadline = time.monotonic() + PATIENCE_S
    while published(root) == before:
        assert time.monotonic() < deadline, "nothing is published"
        assert not any(os.waitpid(pid, os.WNOHANG)[0] for pid in pids), "a rank ended by itself"
        time.sleep(0.002)
    time.sleep(chance.uniform(0, LONGEST_S))
    chance.shuffle(pids)
    known = published(root)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        time.sleep(chance.choice([0, 0.01]))
    return {"published": known, **outcome(keeper_of(root, LOOKS.get(mode, mode), "disk_of_another"), ranks)}


def outcome(keeper: Checkpointer, ranks: int) -> dict[str, object]:
    found = keeper.find()
    if found.manifest is None:
        return {"found": 0, "passed_over": [each.why for each in found.passed_over], "checked": True}
    ended = os.waitstatus_to_exitcode(os.waitpid(forked(check, keeper, found, ranks), 0)[1])
    return {
        "found": found.manifest.step,
        "passed_over": [each.why for each in found.passed_over],
        "checked": ended == 0,
    }


def main(folder: Path, seed: str, kills: str, mode: str, ranks: str) -> None:
    chance = random.Random(seed)
    root = folder / "store"
    print(json.dumps([one_kill(root, folder, mode, int(ranks), chance) for _ in range(int(kills))]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
