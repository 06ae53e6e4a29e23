"""Compilations as an exporter tells of them: those that it keeps of one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from ett_cli.asking import AskError
from ett_core.compile_log import CompileLine
from ett_core.shapes import Compilation, compilations_of

Get = Callable[[str, Mapping[str, str]], Any]
"""Asks the query API for a path with parameters; raises `AskError`."""


class _Answer(msgspec.Struct):
    """What is read of the answer."""

    torch: str
    compilations: list[CompileLine]


def ask_compilations(get: Get, job_id: str) -> tuple[list[Compilation], str]:
    """The compilations of the lowest rank of a job's latest attempts, and its torch.

    Raises:
        AskError: the exporter has no answer, or an older one that cannot be read.
    """
    path = f"/api/v1/jobs/{quote(job_id, safe='')}/compilations"
    try:
        answer = msgspec.convert(get(path, {}), _Answer)
    except msgspec.ValidationError as error:
        raise AskError(f"the answer of {path} cannot be read: {error}") from error
    return list(compilations_of(answer.compilations)), answer.torch
