"""Ranks that meet in a file, joined by gloo, each told of by its answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch.distributed as dist
from warm_ranks import outputs_of


def run_ranks(program: Path, folder: Path, *words: str, ranks: int = 2, **environ: str) -> list[Any]:
    """What each rank of a program answers, in their order; all have ended well, within the limit.

    A program calls `join` first and `answer` once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    outputs = outputs_of(program, words, folder, ranks, {"MEETING": str(folder / "meeting"), **environ})
    return [json.loads(out.splitlines()[-1]) for out in outputs]


def join() -> int:
    """Joins the group; returns the rank."""
    rank = int(os.environ["RANK"])
    dist.init_process_group(
        "gloo",
        init_method=f"file://{os.environ['MEETING']}",
        rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    return rank


def answer(data: object) -> None:
    """What a rank has to say, and the end of its group."""
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps(data), flush=True)
