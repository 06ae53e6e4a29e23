"""Two ways of doing one thing, in turns in the same gloo ranks, by number of tables."""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from ett_trainer_hooks.pipeline.collectives import CollectiveCount

Turn = dict[str, float]
"""Seconds and calls of one turn, by name."""


class Duel(NamedTuple):
    """Two ways and how a turn is done; everything in it can be pickled."""

    ways: tuple[str, str]
    """TorchRec's own way first."""
    turn: Callable[[int, str, Path], Turn]
    """Does it for so many tables, one way, with a folder for what is to outlast the turn."""
    warm_up: Callable[[int, Path], object]
    """Called before the turns of a number of tables."""


class Measured(NamedTuple):
    """Turns of one number of ranks and tables."""

    ranks: int
    tables: int
    first: Sequence[Turn]
    second: Sequence[Turn]

    def both(self, name: str, digits: int) -> list[str]:
        """A figure of both ways, then how many times less the second is, pair by pair."""
        ways = [[turn[name] for turn in turns] for turns in (self.first, self.second)]
        ratios = [a / b for a, b in zip(*ways, strict=True)]
        return [*(spread(each, digits) for each in ways), spread(ratios, 1)]

    def calls(self, names: Iterable[str]) -> list[str]:
        """How often something was called, one way and the other."""
        return [f"{self.first[0][name]:.0f} to {self.second[0][name]:.0f}" for name in names]

    def medians(self, name: str) -> str:
        """The median of a figure, one way and the other."""
        medians = (statistics.median(turn[name] for turn in turns) for turns in (self.first, self.second))
        return " to ".join(f"{each:.3f}" for each in medians)


class Table(NamedTuple):
    """What is printed, and what is measured where the command line does not say."""

    about: str
    titles: Sequence[str]
    cells: Callable[[Measured], Iterable[str]]
    ranks: Sequence[int]
    tables: Sequence[int]

    def fill(self, duel: Duel) -> None:
        """Run it, a row for each number of ranks and tables."""
        parser = argparse.ArgumentParser(description=self.about.splitlines()[0])
        parser.add_argument("--ranks", type=int, nargs="+", default=self.ranks)
        parser.add_argument("--tables", type=int, nargs="+", default=self.tables)
        parser.add_argument("--pairs", type=int, default=5)
        arguments = parser.parse_args()
        print(f"| ranks | tables | {' | '.join(self.titles)} |")
        print("|---" * (len(self.titles) + 2) + "|")
        for ranks in arguments.ranks:
            for measured in _measured(duel, ranks, arguments.tables, arguments.pairs):
                cells = [measured.ranks, measured.tables, *self.cells(measured)]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def spread(values: Sequence[float], digits: int) -> str:
    """Median and range."""
    low, middle, high = (
        f"{each:.{digits}f}" for each in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def counted(calls: CollectiveCount, names: Iterable[str], **seconds: float) -> Turn:
    """What a turn took: the slowest rank's seconds, and the calls of this one."""
    slowest = torch.tensor([*seconds.values()], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    called = {name: float(calls.calls.get(name, 0)) for name in names}
    return dict(zip(seconds, slowest.tolist(), strict=True)) | called


class _Plan(NamedTuple):
    ranks: int
    duel: Duel
    tables: Sequence[int]
    pairs: int
    folder: Path


def _measured(duel: Duel, ranks: int, tables: Sequence[int], pairs: int) -> list[Measured]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        processes.spawn(_rank_main, (_Plan(ranks, duel, tables, pairs, folder),), nprocs=ranks)
        found = json.loads((folder / "measured").read_text())
    return [Measured(ranks, count, *(found[str(count)][way] for way in duel.ways)) for count in tables]


def _rank_main(rank: int, plan: _Plan) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.environ |= {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(plan.ranks)}
    meeting = f"file://{plan.folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=plan.ranks)
    found = {count: _turns(plan, count) for count in plan.tables}
    if rank == 0:
        (plan.folder / "measured").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def _turns(plan: _Plan, count: int) -> dict[str, list[Turn]]:
    duel = plan.duel
    duel.warm_up(count, plan.folder)
    found: dict[str, list[Turn]] = {way: [] for way in duel.ways}
    for pair in range(plan.pairs):
        for way in duel.ways if pair % 2 else reversed(duel.ways):
            found[way].append(duel.turn(count, way, plan.folder))
    return found
