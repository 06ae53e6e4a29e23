"""Real ranks for tests: processes that meet in a file, joined by gloo, each told of by its answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist

LIMIT_S = 180.0


def run_ranks(program: Path, folder: Path, *words: str, ranks: int = 2, **environ: str) -> list[Any]:
    """What each rank of a program answers, in their order; all have ended well, within the limit.

    A program calls `join` first and `answer` once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    here = [str(Path(__file__).parent), *filter(None, [mine.get("PYTHONPATH")])]
    shared = {
        "WORLD_SIZE": str(ranks),
        "MEETING": str(folder / "meeting"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(here),
        **environ,
    }
    children = [
        subprocess.Popen(
            [sys.executable, str(program), *words],
            env={
                **mine,
                "LOCAL_WORLD_SIZE": str(ranks),
                **shared,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
            },
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        ended = [child.communicate(timeout=LIMIT_S) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    errors = [err[-3000:] for child, (_, err) in zip(children, ended, strict=True) if child.returncode]
    assert not errors, "\n".join(errors)
    return [json.loads(out.splitlines()[-1]) for out, _ in ended]


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
