"""Messages that go on below the line of their exception: broken by whoever wrote or printed them. Pure."""

from __future__ import annotations

import re

from ett_core.failures.needles import LINE_LIMIT
from ett_core.failures.speakers import parted
from ett_core.failures.stamps import stamp_of

LINES_BELOW = 4
WRAPPED = range(56, 133)
"""Characters of a line that a printer may have broken in the middle of a sentence."""

_BREAKS_OFF = re.compile(r"[\w,(\[]$", re.ASCII)
ANOTHER = re.compile(
    r"^(?:Traceback|During handling|The above exception|Exception raised|frame #|terminate called"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b|\[|[IWEF]\d{4} |wandb:|srun:|slurmstepd:"
    r"| {2}File | {2}what\(\)|[-=*#]{3}"
    r"|\S{0,80}\d{1,3}%\||CUDA kernel errors|For debugging|Compile with|Last error|NCCL|ncc?l\w+Error"
    r"|(?:\w{1,60}\.){0,6}[A-Z]\w{1,60}(?:Error|Exception)\b)",
    re.ASCII,
)
"""How a line begins that is no part of the message above it."""


def whole_message(data: bytes, start: int, end: int) -> str:
    r"""The message of the exception that stands from `start` to `end`; empty where it ends in its own line.

    >>> log = b"RuntimeError:\n   the shard 7 is cut\n\nstep 3\n"
    >>> whole_message(log, 0, 13)
    'RuntimeError: the shard 7 is cut'
    >>> whole_message(b"KeyError: 'x'\nstep 3\n", 0, 13)
    ''
    """
    line = _line(data, start, end)
    is_stamped = stamp_of(line) is not None
    speaker, first = parted(line)
    parts = [first.strip()]
    while len(parts) <= LINES_BELOW and _goes_on(parts[-1]) and end < len(data):
        start, end = end + 1, data.find(b"\n", end + 1)
        end = end if end >= 0 else len(data)
        line = _line(data, start, end)
        below_speaker, below = parted(line)
        if below_speaker != speaker or not below.strip() or ANOTHER.match(below):
            break
        if stamp_of(line) is not None and not is_stamped:
            break
        parts.append(below.strip())
    return " ".join(parts) if len(parts) > 1 else ""


def _line(data: bytes, start: int, end: int) -> str:
    return data[start : min(end, start + LINE_LIMIT)].decode("utf-8", "replace").rstrip()


def _goes_on(part: str) -> bool:
    return part.endswith(":") or (len(part) in WRAPPED and _BREAKS_OFF.search(part) is not None)
