"""From the bytes of a log to what in it may explain a failure: linear in the size of the log.

Only lines that hold a needle of a table are decoded and matched, each once, and of what repeats only
the first and the last ones (`needles`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec

from ett_core.failures.classes import NOT_A_FAILURE, UNKNOWN
from ett_core.failures.columns import rejoined
from ett_core.failures.general import Meaning, in_a_file, in_a_save, meaning_of_place
from ett_core.failures.last_words import last_words
from ett_core.failures.lines import AT_WARNING, NEEDLES, Sighting, in_general, number_in, read_line
from ett_core.failures.needles import LINE_LIMIT, Hit
from ett_core.failures.places import LineNumbers, Moments, frames_above, frames_at_end
from ett_core.failures.printed import as_said
from ett_core.failures.rule import CASCADE, CONTEXT, ROOT, TEARDOWN, WARNING, Rule
from ett_core.failures.rules import RULES
from ett_core.failures.stamps import Calendar, Moment
from ett_core.failures.survived import SAID_BY_PROGRAMS, Ending, survived
from ett_core.failures.unfinished import whole_message

_RANK = re.compile(
    r"\[?\brank[ :=]{0,2}(\d{1,6})\b\]?|\(RANK (\d{1,6})\)|\[(?:default|trainer)(\d{1,6})\]",
    re.IGNORECASE | re.ASCII,
)
_NODE = re.compile(
    r"\*\*\* (?:JOB|STEP) \S{1,40} ON (\S{1,80}) CANCELLED|srun: error: ([\w.-]{1,80}): task"
    r"|^([\w-][\w.-]{0,62}):\d{1,8}:\d{1,8} \["
    r"|\bnode '?([\w.-]{1,60}?)_\d+_\d+'|caught signal \w+ on ([\w.-]{1,80})",
    re.IGNORECASE | re.ASCII,
)
_OF_SOCKET_OR_FILE = re.compile(r"\bOSError: \[Errno (?:107|103|108|112|70)\]", re.ASCII)
"""What a socket and a mounted file system say in the same words."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text comes from, as far as the text itself does not say better."""

    source: str = ""
    rank: int | None = None
    node: str = ""
    date: datetime | None = None
    """The day to begin with where stamps tell none."""
    time: float | None = None
    """Unix seconds of lines without a stamp."""


def scan(
    data: bytes,
    where: Where = Where(),  # noqa: B008 - frozen
    rules: Sequence[Rule] = RULES,
) -> list[Sighting]:
    """Everything in a log that may explain a failure, in the order of the log.

    Args:
        data: the log.
        where: where it comes from.
        rules: the rows of `RULES`, in their order, each as it is or with a narrower pattern.
    """
    lines = as_said(data)
    data = rejoined(lines.replace(b"\r", b"\n"))
    seen: list[Sighting] = []
    starts: list[int] = []
    numbers = LineNumbers(lines)
    moments = Moments(data, Calendar(where.date))
    for hit in NEEDLES.lines(data.lower()):
        line = data[hit.start : hit.end]
        text = _window(line, hit.at - hit.start).decode("utf-8", "replace").rstrip("\r")
        moment = moments.of(hit.start, text)
        found = read_line(text, rules)
        if found is not None:
            if found.generic and found.failure_class == "user_code":
                found = _by_message(data, hit, rules) or in_general(
                    text, meaning_of_place(text, frames_above(data, hit.start))
                )
            elif found.generic and found.failure_class == "service_error":
                found = _of_place(found, text, frames_above(data, hit.start))
            elif found.generic and found.failure_class == "checkpoint_incompatible":
                if in_a_save(frames_above(data, hit.start)):
                    found = in_general(text, Meaning("checkpoint_save_failed", ROOT))
            elif _OF_SOCKET_OR_FILE.search(text) and in_a_file(frames_above(data, hit.start)):
                found = in_general(text, Meaning("storage_io", ROOT))
            seen.append(_placed(found, text, where, numbers.at(hit.start), moment))
            starts.append(hit.start)
    seen = _without_survived(data, starts, seen)
    return [*seen, *_unnamed_end(data, LineNumbers(lines), where, seen, rules)]


def _of_place(found: Sighting, text: str, frames: str) -> Sighting:
    """What a request was for, by the code that made it, where its own words do not tell."""
    meant = meaning_of_place(text, frames)
    return in_general(text, meant) if meant is not None else found


def _by_message(data: bytes, hit: Hit, rules: Sequence[Rule]) -> Sighting | None:
    """What the message of an exception says where it goes on below its line, as far as that tells more."""
    whole = whole_message(data, hit.start, hit.end)
    found = read_line(whole, rules) if whole else None
    if found is None or found.role == WARNING or found.failure_class in ("user_code", UNKNOWN):
        return None
    return msgspec.structs.replace(found, certain=False)


def _without_survived(data: bytes, starts: Sequence[int], seen: list[Sighting]) -> list[Sighting]:
    """Exceptions that ended nothing, as the warnings that they are; that they were traced says no more."""
    ends = [place for place, sighting in enumerate(seen) if sighting.role not in (WARNING, CONTEXT)]
    endings = [
        Ending(
            starts[place],
            seen[place].role == ROOT and not seen[place].weak,
            is_of_program=seen[place].failure_class in SAID_BY_PROGRAMS,
            is_of_others=seen[place].role == CASCADE and seen[place].failure_class != UNKNOWN,
        )
        for place in ends
    ]
    harmless = {place for place, is_it in zip(ends, survived(data, endings), strict=True) if is_it}
    return [
        msgspec.structs.replace(one, failure_class=NOT_A_FAILURE, role=WARNING, generic=False)
        if place in harmless
        else one
        for place, one in enumerate(seen)
        if place not in harmless or one.failure_class != UNKNOWN
    ]


def _unnamed_end(
    data: bytes, numbers: LineNumbers, where: Where, seen: Sequence[Sighting], rules: Sequence[Rule]
) -> Iterator[Sighting]:
    """By which words something ended here, where no table names any that did, or only how a process ended."""
    ends = [s for s in seen if s.role not in (WARNING, CONTEXT)]
    named = [s for s in ends if s.failure_class != UNKNOWN and s.role != TEARDOWN]
    if any(s.role != ROOT or not s.weak for s in named):
        return
    last = last_words(data, partial(_is_harmless, rules))
    if last is None:
        return
    meant = last.meant or (None if last.is_raised else meaning_of_place(last.text, frames_at_end(data)))
    if meant is None and (named or (ends and not last.is_raised)):
        return
    found = in_general(last.text, meant)
    if meant is None and not last.is_raised:
        found = msgspec.structs.replace(found, failure_class=UNKNOWN, weak=True)
    moment = Moments(data, Calendar(where.date)).of(last.start, last.text)
    yield _placed(found, last.text, where, numbers.at(last.start), moment)


def _is_harmless(rules: Sequence[Rule], line: str) -> bool:
    """A warning, or what a table knows to end nothing or to tell how a process was ended."""
    known = read_line(line, rules)
    return AT_WARNING.search(line[:200]) is not None or (
        known is not None
        and (known.role in (WARNING, CONTEXT) or (known.by_exit and known.failure_class != UNKNOWN))
    )


def _placed(found: Sighting, text: str, where: Where, number: int, moment: Moment | None) -> Sighting:
    rank = number_in(_RANK.search(text))
    node = next((g for g in match.groups() if g), "") if (match := _NODE.search(text)) else ""
    return msgspec.structs.replace(
        found,
        source=where.source,
        line=number,
        rank=next((r for r in (rank, found.rank, where.rank) if r is not None), None),
        node=node or where.node,
        time=moment.time if moment else where.time,
        order_s=moment.order_s if moment else where.time,
    )


def _window(line: bytes, at: int) -> bytes:
    """The line, or of a very long one what stands around the first needle, which is `at`."""
    if len(line) <= LINE_LIMIT:
        return line
    begin = max(at - LINE_LIMIT // 4, 0)
    return line[begin : begin + LINE_LIMIT]
