"""Compilations as torch's structured traces tell of them; the only I/O is the reading of the files.

TORCH_TRACE has torch write a log a process (`dedicated_log_torch_trace_*.log`), which tlparse
copies as `raw.log`. A line is a prefix of glog's and a JSON object; what belongs to an object and
is long follows on lines that begin with a tab. Of a compilation that torch began again (after a
break in the graph) the last attempt counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ett_core.shapes import Compilation, Input, Symbol, symbol_of

LOG_SUFFIX = ".log"

_LINE = re.compile(rb"^[VIWE]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\]]+\] (\{.*\})\s*$")
_WANTED = re.compile(
    rb'\{"(?:describe_tensor|describe_source|create_symbol|dynamo_output_graph|compilation_metrics|dynamo_start)"'
)
_VERSION = re.compile(rb'^\t"pytorch_version": "([^"]+)"')
_WHOLE = "s"
"""How torch's names of whole numbers begin; those of fractions begin with `zf`."""


class Trace(msgspec.Struct, frozen=True):
    """What one log holds."""

    compilations: tuple[Compilation, ...]
    torch_version: str


class _Attempt:
    """One attempt at a compilation, as its lines are read."""

    def __init__(self) -> None:
        self.tensors: dict[tuple[int, int], Mapping[str, Any]] = {}
        self.inputs: dict[str, Input] = {}
        self.symbols: set[Symbol] = set()
        self.graph = False


def logs_below(place: Path) -> list[Path]:
    """The logs of a directory, at any depth; a file that is called a log is its own, another has none."""
    if place.is_dir():
        return sorted(path for path in place.rglob(f"*{LOG_SUFFIX}") if path.is_file())
    return [place] if place.suffix == LOG_SUFFIX else []


def read_trace(log: Path) -> Trace:
    """The compilations of one log.

    Raises:
        OSError: it cannot be read.
    """
    with log.open("rb") as lines:
        return parse_trace(lines, process=str(log))


def parse_trace(lines: Iterable[bytes], *, process: str) -> Trace:
    """The compilations that lines of one log tell of; what is no such line is passed over."""
    version = ""
    attempts: dict[tuple[int, int, int], _Attempt] = {}
    metrics: dict[tuple[int, int], Mapping[str, Any]] = {}
    for found in _objects(lines):
        if isinstance(found, str):
            version = version or found
            continue
        key = _key(found)
        if key is None:
            continue
        if told := found.get("compilation_metrics"):
            if told.get("is_forward") is not False:
                metrics[key[:2]] = told
        else:
            _take(attempts.setdefault(key, _Attempt()), found)
    last: dict[tuple[int, int], _Attempt] = {key[:2]: attempts[key] for key in sorted(attempts)}
    made = (_compilation(process, key, last[key], metrics.get(key, {})) for key in sorted(last))
    return Trace(tuple(made), version)


def _objects(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any] | str]:
    """The objects that matter, and the version of torch where it is told."""
    for line in lines:
        if line.startswith(b"\t"):
            if version := _VERSION.match(line):
                yield version[1].decode()
        elif _WANTED.search(line) and (found := _LINE.match(line)):
            try:
                decoded = msgspec.json.decode(found[1])
            except (msgspec.DecodeError, RecursionError):
                continue
            yield decoded


def _key(told: Mapping[str, Any]) -> tuple[int, int, int] | None:
    frame, nth = told.get("frame_id"), told.get("frame_compile_id")
    if not isinstance(frame, int) or not isinstance(nth, int):
        return None
    return frame, nth, int(told.get("attempt") or 0)


def _take(attempt: _Attempt, told: Mapping[str, Any]) -> None:
    if tensor := told.get("describe_tensor"):
        attempt.tensors[(tensor["describer_id"], tensor["id"])] = tensor
    elif named := told.get("describe_source"):
        tensor = attempt.tensors.get((named["describer_id"], named["id"]))
        if tensor is not None:
            attempt.inputs[named["source"]] = _input(named["source"], tensor)
    elif (symbol := told.get("create_symbol")) and str(symbol["symbol"]).startswith(_WHOLE):
        attempt.symbols.add(symbol_of(str(symbol["source"])))
    elif "dynamo_output_graph" in told:
        attempt.graph = True


def _input(source: str, tensor: Mapping[str, Any]) -> Input:
    size = tuple(side if isinstance(side, int) else -1 for side in tensor.get("size", ()))
    gradient = " with gradient" if tensor.get("requires_grad") else ""
    return Input(source, size, f"{tensor.get('dtype')} {tensor.get('device')}{gradient}")


def _compilation(
    process: str, key: tuple[int, int], attempt: _Attempt, metrics: Mapping[str, Any]
) -> Compilation:
    name, file, line = (metrics.get(field) for field in ("co_name", "co_filename", "co_firstlineno"))
    return Compilation(
        process=process,
        frame=key[0],
        nth=key[1],
        code=f"{name} ({Path(file).name}:{line})" if name and file else "",
        reason=metrics.get("recompile_reason"),
        inputs=tuple(attempt.inputs.values()),
        symbols=frozenset(attempt.symbols),
        graph=attempt.graph,
    )
