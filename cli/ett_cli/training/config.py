"""The configuration of `ett train`: a TOML file, the command line above it, and both written out again. Pure.

A file may leave out whatever shall stay as it is by default. What it holds beyond that is refused by name,
as a misspelt setting would be a silent default otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import tomllib

from ett_cli.job_settings import directory_name
from ett_trainer_hooks.pipeline.parts import PARTS, parse
from ett_trainer_hooks.reference.settings import Settings

TRAINER = tuple(each.name for each in fields(Settings) if each.name != "parts")
"""What the table `trainer` can hold."""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    ranks: int = 2
    rank_restarts: int = 3
    run_dir: str = "runs"
    trainer: Settings = Settings()
    parts: dict[str, bool] = {}


@dataclass(frozen=True, kw_only=True)
class Config:
    """What `ett train` trains, and with which parts of the optimised pipeline."""

    ranks: int = 2
    """Processes that train together on this machine."""
    rank_restarts: int = 3
    """How often torchrun starts all ranks again after one has failed."""
    run_dir: str = "runs"
    """Directory for checkpoints and what later starts use again, where nothing else is said."""
    parts: frozenset[str] = frozenset(PARTS)
    """The parts that are on."""
    trainer: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the trainer that were given, by name."""

    def __post_init__(self) -> None:
        """Refuse what cannot be started."""
        if self.ranks < 1:
            raise ValueError(f"ranks is {self.ranks}, must be at least 1")
        if self.rank_restarts < 0:
            raise ValueError(f"rank_restarts is {self.rank_restarts}, must be at least 0")
        if "\0" in self.run_dir:
            raise ValueError("run_dir holds a NUL")

    def settings(self, job_id: str) -> Settings:
        """All settings of the trainer.

        Raises:
            ValueError: one of them cannot be, or not with the others.
        """
        parts = ",".join(part for part in PARTS if part in self.parts)
        return Settings(**{**self.places(job_id), **self.trainer, "parts": parts})

    def places(self, job_id: str) -> dict[str, Any]:
        """Where a job keeps its checkpoints, and all jobs what later starts use again, by default."""
        return {
            "checkpoint_dir": Path(self.run_dir, directory_name(job_id), "checkpoints"),
            "cache": str(Path(self.run_dir, "cache")),
        }


def read(text: str) -> Config:
    r"""The configuration in the text of a file.

    Raises:
        ValueError: it is not TOML, or holds what is no setting, or a value that none can have.

    >>> read("ranks = 1\n[parts]\nstages = false").ranks
    1
    >>> read("[parts]\nstagse = false")
    Traceback (most recent call last):
    ...
    ValueError: there is no 'parts.stagse'; the nearest is 'parts.stages'
    """
    try:
        tree = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    tables: dict[str, Collection[str]] = {"": _File.__struct_fields__, "trainer.": TRAINER, "parts.": PARTS}
    for table, names in tables.items():
        given = tree.get(table.removesuffix(".")) if table else tree
        if isinstance(given, dict):
            _refuse_unknown(given, names, table, tables)
            _refuse_other_than_bool(given if table == "parts." else {})
    try:
        file = msgspec.convert(tree, _File, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error))) from error
    return Config(
        ranks=file.ranks,
        rank_restarts=file.rank_restarts,
        run_dir=file.run_dir,
        parts=frozenset(part for part in PARTS if file.parts.get(part, True)),
        trainer={name: getattr(file.trainer, name) for name in tree.get("trainer", ())},
    )


def parts_in(text: str) -> frozenset[str]:
    """The parts that the command line names, such as `all,-stages`.

    Raises:
        ValueError: one of them is no part.
    """
    for word in filter(None, (piece.strip().removeprefix("-") for piece in text.split(","))):
        _refuse_unknown([word], (*PARTS, "all"), "")
    return parse(text)


def written(config: Config, job_id: str) -> str:
    """The configuration as the text of a file that `read` reads; what follows from the job is a comment."""
    return "\n".join(_lines(config, job_id)) + "\n"


def _lines(config: Config, job_id: str) -> Iterator[str]:
    for name in ("ranks", "rank_restarts", "run_dir"):
        yield f"{name} = {_value(getattr(config, name))}"
    yield "\n[trainer]"
    settings, places = config.settings(job_id), config.places(job_id)
    for name in TRAINER:
        follows = name in places and name not in config.trainer
        yield f"{'# ' if follows else ''}{name} = {_value(getattr(settings, name))}"
    yield "\n[parts]"
    for part, does in PARTS.items():
        yield f"{part} = {_value(part in config.parts)}  # {does}"


def _value(value: object) -> str:
    """A value in TOML, whose texts are written like those of JSON, but for one character."""
    text = json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")


def _decode(kind: type[Any], value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"Expected `str`, got `{type(value).__name__}`")


def _refuse_unknown(
    given: Collection[str],
    known: Collection[str],
    where: str,
    tables: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Refuse a name that there is not; one that another of the `tables` has is told so."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"the nearest is '{where}{near[0]}'" if near else f"there are {', '.join(known)}"
            if (table := next((each for each, names in tables.items() if name in names), None)) is not None:
                hint = f"there is '{table}{name}'"
            raise ValueError(f"there is no '{where}{name}'; {hint}")


def _refuse_other_than_bool(parts: Mapping[str, object]) -> None:
    """As msgspec would, which does not say of which part it is."""
    for part, value in parts.items():
        if not isinstance(value, bool):
            raise ValueError(  # noqa: TRY004 - for the user
                f"parts.{part}: Expected `bool`, got `{type(value).__name__}`"
            )


def _in_words(text: str) -> str:
    """A complaint of msgspec with the name of the setting in front.

    >>> _in_words("Expected `int`, got `str` - at `$.trainer.steps`")
    'trainer.steps: Expected `int`, got `str`'
    """
    what, at, where = text.rpartition(" - at `$.")
    return f"{where.removesuffix('`')}: {what}".replace("`object`", "a table") if at else text
