"""Compilations as an exporter tells of them: those that it keeps of one job, and how much was tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ett_cli.asking import AskError
from ett_core.compile_log import CompileLine
from ett_core.shapes import Compilation, compilations_of
from ett_core.tuning import CACHE, Asked

T = TypeVar("T")
Get = Callable[[str, Mapping[str, str]], Any]
"""Asks the query API for a path with parameters; raises `AskError`."""


class _Answer(msgspec.Struct):
    """What is read of the answer."""

    torch: str
    compilations: list[CompileLine]


class _Cache(msgspec.Struct):
    hits: int
    misses: int


class _Caches(msgspec.Struct):
    """What is read of the answer."""

    caches: dict[str, _Cache]


def ask_tuned(get: Get, job_id: str) -> list[Asked]:
    """How much a job has tuned so far, over all attempts; empty where nothing was asked for.

    Raises:
        AskError: the exporter has no answer, or one that cannot be read.
    """
    found = _answer(get, job_id, "caches", _Caches).caches.get(CACHE)
    return [] if found is None else [Asked(found=found.hits, tuned=found.misses)]


def ask_compilations(get: Get, job_id: str) -> tuple[list[Compilation], str]:
    """The compilations of the lowest rank of a job's latest attempts, and its torch.

    Raises:
        AskError: the exporter has no answer, or an older one that cannot be read.
    """
    answer = _answer(get, job_id, "compilations", _Answer)
    return list(compilations_of(answer.compilations)), answer.torch


def _answer(get: Get, job_id: str, what: str, kind: type[T]) -> T:
    path = f"/api/v1/jobs/{quote(job_id, safe='')}/{what}"
    try:
        return msgspec.convert(get(path, {}), kind)
    except msgspec.ValidationError as error:
        raise AskError(f"the answer of {path} cannot be read: {error}") from error
