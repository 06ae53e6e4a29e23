"""What the reference trainer can be told, and the command line that tells it.

Read once a process, the same on every rank: ranks that disagree here would wait for each other.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ett_core.waits import LONGEST_WAIT_S
from ett_trainer_hooks.pipeline.parts import PARTS
from ett_trainer_hooks.pipeline.parts import parse as parse_parts

PIPELINES = ("none", "base", "sparse_dist")
"""A plain loop, or the train pipelines of TorchRec that read one and two batches ahead."""
MODES = ("async_thread", "async_process", "sync")
"""Of saves, with the part `async_checkpoint`."""
KEEPERS = frozenset({"stored_plan", "bundle"})
"""The parts that keep something for later starts."""


def _means(text: str) -> dict[str, str]:
    return {"meaning": text}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one training job; the defaults fit two ranks on two cores. `meaning` says what each is."""

    steps: int = field(
        default=900, metadata=_means("steps to have done in total, those before a resume included")
    )
    checkpoint_every_s: float = field(
        default=8.0, metadata=_means("seconds from the end of one checkpoint to the beginning of the next")
    )
    checkpoint_at_least_every_s: float = field(
        default=3600.0, metadata=_means("with the part `interval_control`: never less often, whatever else")
    )
    grace_s: float = field(
        default=25.0,
        metadata=_means("with the part `preemption`: seconds from SIGTERM or SIGUSR2 to the end by force"),
    )
    checkpoint_dir: Path = field(
        default=Path("checkpoints"),
        metadata=_means("directory, shared by all ranks, that holds one directory a checkpoint"),
    )
    checkpoint_mode: str = field(
        default="async_thread",
        metadata=_means("with the part `async_checkpoint`: what writes: a thread, a process, or sync"),
    )
    checkpoint_remote: str = field(
        default="",
        metadata=_means("with the part `async_checkpoint`: URL that saves go to; only there durable"),
    )
    checkpoint_disk: str = field(
        default="",
        metadata=_means(
            "with `checkpoint_remote`: directory on the disk of each node that files go to first; "
            "the ranks of other nodes need not reach it"
        ),
    )
    close_patience_s: float = field(
        default=600.0,
        metadata=_means(
            "with the part `async_checkpoint`: at the end, the longest wait for the last save to be durable"
        ),
    )
    keep: int = field(default=2, metadata=_means("checkpoints kept; older ones are removed"))
    batch_size: int = field(default=1024, metadata=_means("samples a rank and step"))
    rows: int = field(default=20_000, metadata=_means("rows of each of the 26 embedding tables"))
    embedding_dim: int = field(
        default=16, metadata=_means("width of an embedding; also that of the last dense layer")
    )
    learning_rate: float = field(
        default=0.01, metadata=_means("of Adagrad, dense and sparse; higher ones make the dense part jump")
    )
    seed: int = field(default=2026, metadata=_means("of the weights and of the data"))
    agree_every: int = field(
        default=10,
        metadata=_means("steps between two moments at which the ranks agree on the loss and on a checkpoint"),
    )
    compile: bool = field(default=True, metadata=_means("whether torch.compile takes the dense parts"))
    backend: str = field(
        default="inductor",
        metadata=_means("what torch.compile makes code with; `aot_eager` makes none and is there at once"),
    )
    pipeline: str = field(
        default="none", metadata=_means("the train pipeline: none (a plain loop), base or sparse_dist")
    )
    parts: str = field(
        default="",
        metadata=_means("parts of the optimised pipeline, such as `all,-stages`; a plain trainer without"),
    )
    cache: str = field(
        default="",
        metadata=_means("directory or URL of what later starts use again; needed by the parts that do"),
    )
    publish_to: str = field(
        default="", metadata=_means("directory or URL that the model is published to; by default nowhere")
    )
    data_warmup_s: float = field(
        default=0.0,
        metadata=_means("seconds until the source of the data gives its first batch, as remote ones take"),
    )

    def __post_init__(self) -> None:
        """Refuse what cannot train."""
        self._check_values()
        for name in ("steps", "keep", "batch_size", "rows", "embedding_dim", "agree_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least 1")
        for name, choices in (("pipeline", PIPELINES), ("checkpoint_mode", MODES)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, must be one of {', '.join(choices)}")
        self._check_disk()
        for name in ("checkpoint_every_s", "checkpoint_at_least_every_s", "learning_rate"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must be above 0")
        for name in ("data_warmup_s", "grace_s", "close_patience_s", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must not be below 0")
        if (keepers := parse_parts(self.parts) & KEEPERS) and not self.cache:
            names = " and ".join(sorted(keepers))
            raise ValueError(f"{names}: what later starts can use again must lie somewhere: name a --cache")

    def _check_values(self) -> None:
        """What no number and no word of a command line can be."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(each.default, float) and not math.isfinite(value):
                raise ValueError(f"{each.name} is {value}, must be finite")
            if each.name.endswith("_s") and value > LONGEST_WAIT_S:
                raise ValueError(f"{each.name} is {value}, must be at most {LONGEST_WAIT_S:,.0f}")
            if "\0" in str(value):
                raise ValueError(f"{each.name} holds a NUL")

    def _check_disk(self) -> None:
        if self.checkpoint_disk and not self.checkpoint_remote:
            raise ValueError("checkpoint_disk: from the disk of a node files go on: name a checkpoint_remote")
        if self.checkpoint_disk and self.publish_to:
            raise ValueError("checkpoint_disk: a model is published from checkpoints in one directory")

    @property
    def saves_to(self) -> Path:
        """The directory that saves go to first, of the rank that leads."""
        by_disk = self.checkpoint_disk and self.uses("async_checkpoint")
        return Path(self.checkpoint_disk) if by_disk else self.checkpoint_dir

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


def declare(
    parser: argparse._ActionsContainer,
    *,
    but: Collection[str] = (),
    otherwise: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Declare an option a setting, `but` these; one that is not given stands in no result.

    `otherwise` holds in words the defaults that are not those of the settings.
    """
    for each in fields(Settings):
        if each.name in but:
            continue
        flag = "--" + each.name.replace("_", "-")
        how: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(each, otherwise.get(each.name))}
        if isinstance(each.default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **how)
            continue
        kind = Path if isinstance(each.default, Path) else type(each.default)
        parser.add_argument(flag, type=kind, metavar=each.name.rpartition("_")[2].upper(), **how)


def _help(setting: Field[Any], otherwise: str | None) -> str:
    meaning, default = setting.metadata["meaning"], otherwise or setting.default
    if isinstance(default, bool):
        default = "yes" if default else "no"
    return f"{meaning} (default: {default})" if default not in ("", 0.0) else str(meaning)


def words_of(settings: Settings) -> list[str]:
    """The words that `parse` reads as these settings.

    >>> words_of(Settings(steps=50, compile=False))
    ['--steps=50', '--no-compile']
    """
    words: list[str] = []
    for each in fields(Settings):
        value, flag = getattr(settings, each.name), each.name.replace("_", "-")
        if value == each.default:
            continue
        words.append(f"--{'' if value else 'no-'}{flag}" if isinstance(value, bool) else f"--{flag}={value}")
    return words
