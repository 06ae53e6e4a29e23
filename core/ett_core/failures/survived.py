"""Which tracebacks of a log ended nothing: those that Python ignored, and those that training outlived. Pure.

A traceback is a block: a line that opens it, frames, and the exception. What tells that it was survived
is a step, behind it, with a larger number than the last one before: a bar of progress or a summary that is
printed once more while a program ends tells no new step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ett_core.failures.needles import LINE_LIMIT
from ett_core.failures.places import OPENED
from ett_core.failures.speakers import READ_WITHIN, parted, said, spoken

IGNORED = "Exception ignored "
FRAMES_AT_MOST = 120
"""Lines of a traceback above its exception that are looked at."""
SAID_BY_PROGRAMS = frozenset(
    {
        "checkpoint_corrupt",
        "checkpoint_incompatible",
        "checkpoint_save_failed",
        "compile_failure",
        "config_error",
        "data_corrupt",
        "dataloader_failure",
        "environment_error",
        "gpu_oom",
        "nan_loss",
        "network_fault",
        "object_store",
        "rendezvous_failure",
        "resource_limit",
        "service_error",
        "storage_io",
        "user_code",
    }
)
"""Classes of errors that a program may report and live through."""
STEPS_BEHIND = 2
"""Steps that must follow an error without a traceback: it may have been written while they ran."""
STEPS_BEHIND_A_LOSS = 3
"""Steps that must follow the loss of a partner, or a wait for it, that ended nothing."""
LINES_THAT_LET_BE = 3
"""Lines behind an error in which its speaker may say that it matters to nobody."""
BEFORE_BYTES, AFTER_BYTES = 4_096, 12_288
"""How far before and behind a traceback steps are looked for."""

_STEP = re.compile(
    rb"\b(?:global_?step|step|iter(?:ation)?|epoch)\b\W{0,4}(\d{1,12})\b|\|\s{0,4}(\d{1,12})/\d{1,12} \[",
    re.IGNORECASE | re.ASCII,
)
_WENT_WELL = re.compile(
    r"^\W{0,3}(?:success(?:ful(?:ly)?)?|done|(?:training|job|run)\b[^\n]{0,40}\b(?:completed?|finished|succeeded))\W{0,3}$",
    re.IGNORECASE | re.ASCII,
)
_LET_BE = re.compile(
    r"^\W{0,4}(?:\[[^\]\n]{0,40}\] {0,2}){0,3}"
    r"(?:ignoring|skipping|falling back|retrying|will retry|trying again|continuing)\b",
    re.IGNORECASE | re.ASCII,
)
"""How a line begins behind an error that ended nothing."""
_NO_STEP = re.compile(rb"Error\b|Exception\b|^wandb: |^\s{4}", re.ASCII)


class Ending(NamedTuple):
    """Something that may have ended a log: where its line begins, and whether it is a root of its own."""

    start: int
    is_root: bool
    is_of_program: bool = False
    """The program itself says so, and may have gone on although it raised nothing."""
    is_of_others: bool = False
    """It follows from a fault elsewhere, which may have been mended."""

    def least_steps(self, *, is_traced: bool) -> int | None:
        """How many steps behind it tell that it ended nothing; None where none can."""
        if is_traced:
            return 1
        return STEPS_BEHIND_A_LOSS if self.is_of_others else STEPS_BEHIND if self.is_of_program else None


def survived(data: bytes, endings: Sequence[Ending]) -> list[bool]:
    r"""Of each of the endings in the order of the log, whether it ended nothing.

    >>> log = b"step 1\nTraceback (most recent call last):\n  File 'x'\nKeyError: 1\nstep 2\n"
    >>> survived(log, [Ending(7, False), Ending(53, True)]), survived(log[:-7], [Ending(53, True)])
    ([True, True], [False])
    """
    harmless: list[bool] = []
    block_begin = block_end = len(data) + 1
    after: Ending | None = None
    for ending in reversed(endings):
        raised = _raised(data, ending.start)
        if not block_begin <= ending.start < block_end:
            begin, is_ignored = _block(data, raised)
            if is_ignored or _outlived(data, (begin, raised), ending, after):
                block_begin, block_end = begin, raised + 1
        harmless.append(block_begin <= ending.start < block_end)
        if not harmless[-1] and (after is None or raised != after.start):
            after = ending
    return harmless[::-1]


def _raised(data: bytes, start: int) -> int:
    """Where the exception stands whose traceback begins at `start`; there, if none does."""
    at = start
    while _line(data, at).startswith(OPENED) or (at > start and _line(data, at)[:1].isspace()):
        end = data.find(b"\n", at) + 1
        if not end or end - start > FRAMES_AT_MOST * LINE_LIMIT:
            return start
        at = end
    return at


def _line(data: bytes, start: int) -> bytes:
    """A line, from its beginning on, without whoever speaks."""
    end = data.find(b"\n", start, start + LINE_LIMIT)
    line = data[start : end if end >= 0 else start + LINE_LIMIT]
    return parted(line.decode("latin-1"))[1].encode("latin-1")


def _block(data: bytes, start: int) -> tuple[int, bool]:
    """Where the traceback of the exception at `start` begins (there, without one), and if it was ignored."""
    begin, opened = start, False
    for _ in range(FRAMES_AT_MOST):
        if begin == 0:
            break
        above = data.rfind(b"\n", 0, begin - 1) + 1
        line = _line(data, above)
        if line.startswith(IGNORED.encode()):
            return above, True
        if opened or not (line[:1].isspace() or (opened := line.startswith(OPENED))):
            break
        begin = above
    return (begin if opened else start), False


def _outlived(data: bytes, block: tuple[int, int], ending: Ending, after: Ending | None) -> bool:
    """Whether steps enough go on behind an error, before anything that may follow from it."""
    begin, start = block
    least = ending.least_steps(is_traced=begin < start)
    if least is None or (after is not None and not after.is_root):
        return False
    line_end = data.find(b"\n", start) + 1 or len(data)
    if ending.is_of_program and _let_be(data, start, line_end):
        return True
    if ending.is_of_others and after is None and _went_well(data[line_end : line_end + AFTER_BYTES]):
        return True
    speaker = _speaker(data[start : start + LINE_LIMIT])
    limit = min(len(data) if after is None else after.start, line_end + AFTER_BYTES)
    steps = _steps(data[line_end:limit], speaker)
    before = _steps(data[max(begin - BEFORE_BYTES, 0) : begin], speaker)[-1:]
    advances = sum(later > earlier for earlier, later in pairwise([*before, *steps]))
    is_anew = ending.is_of_others and steps[:1] < before
    return not is_anew and advances >= (least if before else max(least - 1, 1))


def _let_be(data: bytes, start: int, line_end: int) -> bool:
    """Whether who told of the error that begins at `start` goes on at once to say that it does without."""
    speaker = _speaker(data[start : start + LINE_LIMIT])
    at = line_end
    for _ in range(LINES_THAT_LET_BE):
        end = data.find(b"\n", at, at + LINE_LIMIT)
        line = data[at : end if end >= 0 else at + LINE_LIMIT]
        if _speaker(line) != speaker:
            return False
        if _LET_BE.match(spoken(line.decode("latin-1"))):
            return True
        if end < 0:
            return False
        at = end + 1
    return False


def _went_well(text: bytes) -> bool:
    return any(_WENT_WELL.match(said(line[:LINE_LIMIT])) for line in text.decode("latin-1").splitlines())


def _steps(text: bytes, speaker: bytes) -> list[int]:
    """The numbers of the steps that one rank tells of, in their order."""
    lines = (line[:LINE_LIMIT] for line in text.splitlines() if _speaker(line) == speaker)
    found = (_STEP.search(line) for line in lines if not _NO_STEP.search(line))
    return [int(match[1] or match[2]) for match in found if match]


def _speaker(line: bytes) -> bytes:
    return parted(line[:READ_WITHIN].decode("latin-1"))[0].encode("latin-1")
