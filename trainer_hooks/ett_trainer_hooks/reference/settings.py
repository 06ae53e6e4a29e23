"""What the reference trainer can be told, and the command line that tells it.

Read once a process, the same on every rank: ranks that disagree here would wait for each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from ett_trainer_hooks.pipeline.parts import PARTS
from ett_trainer_hooks.pipeline.parts import parse as parse_parts

PIPELINES = ("none", "base", "sparse_dist")
"""A plain loop, or the train pipelines of TorchRec that read one and two batches ahead."""
MODES = ("async_thread", "async_process", "sync")
"""Of saves, with the part `async_checkpoint`."""
KEEPERS = frozenset({"stored_plan", "bundle"})
"""The parts that keep something for later starts."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one training job; the defaults fit two ranks on two cores."""

    steps: int = 900
    """Steps to have done in total, those before a resume included."""
    checkpoint_every_s: float = 8.0
    """Seconds from the end of one checkpoint to the beginning of the next."""
    checkpoint_at_least_every_s: float = 3600.0
    """With the part `interval_control`: never less often, whatever else."""
    grace_s: float = 25.0
    """With the part `preemption`: seconds from SIGTERM or SIGUSR2 to the end by force."""
    checkpoint_dir: Path = Path("checkpoints")
    """Directory, shared by all ranks, that holds one directory a checkpoint."""
    checkpoint_mode: str = "async_thread"
    """With the part `async_checkpoint`: who writes what was copied, a thread or a process; or sync."""
    checkpoint_remote: str = ""
    """With the part `async_checkpoint`: a URL that saves are brought to; only there they are durable."""
    keep: int = 2
    """Checkpoints kept; older ones are removed."""
    batch_size: int = 1024
    """Samples a rank and step."""
    rows: int = 20_000
    """Rows of each of the 26 embedding tables."""
    embedding_dim: int = 16
    """Width of an embedding; also that of the last dense layer."""
    learning_rate: float = 0.01
    """Of Adagrad, dense and sparse; higher ones make the dense part jump."""
    seed: int = 2026
    """Of the weights and of the data."""
    agree_every: int = 10
    """Steps between two moments at which the ranks agree on the loss and on a checkpoint."""
    compile: bool = True
    """Whether torch.compile takes the dense parts."""
    backend: str = "inductor"
    """What torch.compile makes code with; `aot_eager` makes none and is there at once."""
    pipeline: str = "none"
    """The train pipeline: none (a plain loop), base or sparse_dist."""
    parts: str = ""
    """Parts of the optimised pipeline to use, such as `all,-stages`; without any this is a plain trainer."""
    cache: str = ""
    """Directory or URL that keeps what a later start can use again; needed by the parts that do so."""
    publish_to: str = ""
    """Directory or URL that the trained model is published to; nothing is published by default."""
    data_warmup_s: float = 0.0
    """Seconds until the source of the data gives its first batch, as remote ones take."""

    def __post_init__(self) -> None:
        """Refuse what cannot train."""
        for name in ("steps", "keep", "batch_size", "rows", "embedding_dim", "agree_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least 1")
        for name, choices in (("pipeline", PIPELINES), ("checkpoint_mode", MODES)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, must be one of {', '.join(choices)}")
        for name in ("checkpoint_every_s", "checkpoint_at_least_every_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must be above 0")
        for name in ("data_warmup_s", "grace_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must not be below 0")
        if (keepers := parse_parts(self.parts) & KEEPERS) and not self.cache:
            names = " and ".join(sorted(keepers))
            raise ValueError(f"{names}: what later starts can use again must lie somewhere: name a --cache")

    def uses(self, part: str) -> bool:
        """Whether a part of the optimised pipeline is on; ValueError where it is none."""
        if part not in PARTS:
            raise ValueError(f"{part!r} is no part of the pipeline")
        return part in parse_parts(self.parts)


def parse(words: Sequence[str]) -> Settings:
    """Settings from the words of a command line; a wrong one ends the process with status 2.

    >>> parse(["--steps", "50", "--no-compile"]).steps
    50
    """
    parser = argparse.ArgumentParser(prog="ett_trainer_hooks.reference", description=__doc__.split("\n")[0])
    declare(parser)
    try:
        return Settings(**vars(parser.parse_args(words)))
    except ValueError as error:
        parser.error(str(error))


def declare(parser: argparse._ActionsContainer, *, but: Collection[str] = ()) -> None:
    """Declare an option a setting, `but` these; one that is not given stands in no result."""
    for field in fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        if field.name in but:
            continue
        if isinstance(field.default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
            continue
        kind = Path if isinstance(field.default, Path) else type(field.default)
        metavar = field.name.rpartition("_")[2].upper()
        parser.add_argument(flag, type=kind, default=argparse.SUPPRESS, metavar=metavar)


def words_of(settings: Settings) -> list[str]:
    """The words that `parse` reads as these settings.

    >>> words_of(Settings(steps=50, compile=False))
    ['--steps', '50', '--no-compile']
    """
    words: list[str] = []
    for field in fields(Settings):
        value, flag = getattr(settings, field.name), field.name.replace("_", "-")
        if value == field.default:
            continue
        words += (
            [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
        )
    return words
