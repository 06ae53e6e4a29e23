"""From the bytes of a log to what in it may explain a failure: linear in the size of the log.

Only lines that hold a needle of a table are decoded and matched, each once, and of what repeats only
the first and the last ones (`needles`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec

from ett_core.failures.classes import NOT_A_FAILURE, UNKNOWN
from ett_core.failures.exits import EXIT_NEEDLES, WORD_NEEDLES, exit_in
from ett_core.failures.general import Meaning, meaning, meaning_of_place
from ett_core.failures.last_words import last_words
from ett_core.failures.needles import LINE_LIMIT, Needles
from ett_core.failures.places import LineNumbers, Moments, frames_above
from ett_core.failures.rule import CASCADE, CONTEXT, ROOT, WARNING, Rule
from ett_core.failures.rules import RULES
from ett_core.failures.stamps import Calendar, Moment
from ett_core.failures.survived import SAID_BY_PROGRAMS, Ending, survived

EXCEPTION_NEEDLES = ("error", "exception", "notfound:", "failure:", "timeout:")

_EXCEPTION = re.compile(
    r"(?:^|[\s:\]>.])(?!Warning)([A-Z]\w{0,60}(?:Error|Exception|NotFound|Failure|Timeout))"
    r"(?: \(see above for traceback\))?(?::|\s*$)"
    r"|(?:^|[\s\]])Exception: "
    r"|(?:^|[\s:\]>])(?:[a-z_]\w{0,40}\.){1,6}(?:[Ee]rror|timeout|gaierror|TimeoutExpired)(?::|\s*$)",
    re.ASCII,
)
_AT_WARNING = re.compile(
    r"(?:^|[\s\[:])W(?:\d{3,4})? (?=[\w\d])|\bWARNING\b|(?<!NCCL )\bWARN\b|^warn(?:ing)?:|\bwarnings\.warn\b"
    r"|\bNCCL INFO\b",
    re.ASCII,
)
_LAST_TRY = re.compile(r"\bretrying \(?(\d{1,4}) ?(?:/|of) ?\1\b.*", re.ASCII)
"""There is no further try."""
_AT_INFO = re.compile(r"^(?:\[\w{1,12}\]:)?\[?I\d{4} |\bI tensorflow/", re.ASCII)
"""Programs that part in the course of things say so at this level."""
_ADVICE = re.compile(
    r"(?:this |which |it |that )?(?:might|may|could|can) (?:be|have been)"
    r" (?:caused|triggered|due|reported|incorrect)\b[^.\n]{0,300}"
    r"|it is possible that[^.\n]{0,200}"
    r"|(?:consider|try|please try|you (?:can|may|should|might))"
    r" (?:setting|passing|to|increasing|reducing|raising)\b[^.\n]{0,200}"
    r"|\b(?:potential|possible|common|likely|some) (?:root )?(?:causes|reasons)\b[^\n]{0,1500}"
    r"|this is (?:most )?(?:likely|probably|usually|often) (?:caused|due|because|triggered)\b[^\n]{0,1500}"
    r"|for debugging[^.\n]{0,200}|typically indicates[^.\n]{0,200}|compile with `[^.\n]{0,200}"
    r"|please report a bug[^.\n]{0,80}|^.{0,40}\bmay help\b.{0,80}",
    re.IGNORECASE | re.ASCII,
)
_RANK = re.compile(
    r"\[?\brank[ :=]{0,2}(\d{1,6})\b\]?|\(RANK (\d{1,6})\)|\[(?:default|trainer)(\d{1,6})\]",
    re.IGNORECASE | re.ASCII,
)
_PEER_RANK = re.compile(
    r"localRank (\d{1,6})|(?:from|peer|remote|by|waiting for) ranks? \[?(\d{1,6})|from \[(\d{1,6})\] via",
    re.IGNORECASE | re.ASCII,
)
_NODE = re.compile(
    r"\*\*\* (?:JOB|STEP) \S{1,40} ON (\S{1,80}) CANCELLED|srun: error: ([\w.-]{1,80}): task"
    r"|^([\w-][\w.-]{0,62}):\d{1,8}:\d{1,8} \["
    r"|\bnode '?([\w.-]{1,60}?)_\d+_\d+'|caught signal \w+ on ([\w.-]{1,80})",
    re.IGNORECASE | re.ASCII,
)


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """One line (or fact) that may explain a failure, and what it says.

    `line` counts from 1 (0 for a fact that stands in no file), `time` is Unix seconds where it is
    known, `order_s` sorts sightings where it is known. `rank` is the one that spoke, `points_at`
    the one that the text names as the cause. `generic` marks what the same traceback may say
    better, such as an exception that no table knows, `weak` what any better evidence goes before,
    `by_abort` a process that ended itself.
    """

    source: str
    text: str
    failure_class: str
    role: str
    line: int = 0
    rank: int | None = None
    points_at: int | None = None
    node: str = ""
    time: float | None = None
    order_s: float | None = None
    certain: bool = False
    weak: bool = False
    generic: bool = False
    by_abort: bool = False


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
    seen: list[Sighting] = []
    starts: list[int] = []
    numbers = LineNumbers(data)
    moments = Moments(data, Calendar(where.date))
    for hit in _NEEDLES.lines(data.lower()):
        line = data[hit.start : hit.end]
        text = _window(line, hit.at - hit.start).decode("utf-8", "replace").rstrip("\r")
        moment = moments.of(hit.start, text)
        found = read_line(text, rules)
        if found is not None:
            if found.generic and found.failure_class == "user_code":
                found = _in_general(text, meaning_of_place(text, frames_above(data, hit.start)))
            seen.append(_placed(found, text, where, numbers.at(hit.start), moment))
            starts.append(hit.start)
    seen = _without_survived(data, starts, seen)
    return [*seen, *_unnamed_end(data, where, seen, rules)]


def _without_survived(data: bytes, starts: Sequence[int], seen: list[Sighting]) -> list[Sighting]:
    """Exceptions that ended nothing, as the warnings that they are; that they were traced says no more."""
    ends = [place for place, sighting in enumerate(seen) if sighting.role not in (WARNING, CONTEXT)]
    endings = [
        Ending(
            starts[place],
            seen[place].role == ROOT and not seen[place].weak,
            is_of_program=seen[place].failure_class in SAID_BY_PROGRAMS,
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
    data: bytes, where: Where, seen: Sequence[Sighting], rules: Sequence[Rule]
) -> Iterator[Sighting]:
    """By which words something ended here, where no table names any that did, or only how a process ended."""
    ends = [s for s in seen if s.role not in (WARNING, CONTEXT)]
    named = [s for s in ends if s.failure_class != UNKNOWN]
    if any(s.role != ROOT or not s.weak for s in named):
        return
    last = last_words(data, partial(_is_harmless, rules))
    if last is None or (named and last.meant is None) or (ends and not last.is_raised and last.meant is None):
        return
    found = _in_general(last.text, last.meant)
    if last.meant is None and not last.is_raised:
        found = msgspec.structs.replace(found, failure_class=UNKNOWN, weak=True)
    moment = Moments(data, Calendar(where.date)).of(last.start, last.text)
    yield _placed(found, last.text, where, LineNumbers(data).at(last.start), moment)


def _is_harmless(rules: Sequence[Rule], line: str) -> bool:
    """A warning, or what a table knows to end nothing."""
    known = read_line(line, rules)
    return _AT_WARNING.search(line[:200]) is not None or (
        known is not None and known.role in (WARNING, CONTEXT)
    )


def read_line(line: str, rules: Sequence[Rule] = RULES) -> Sighting | None:
    """What one line says; None where it says nothing of a failure.

    >>> read_line("RuntimeError: CUDA error: out of memory").failure_class
    'gpu_busy'
    """
    text = line[:LINE_LIMIT]
    told = _LAST_TRY.sub(" ", _ADVICE.sub(" ", text))
    places = sorted(_NEEDLES.meant_by(told.lower()))
    warned = _AT_WARNING.search(text[:200]) is not None and _LAST_TRY.search(text) is None
    known = [rules[place] for place in places]
    rule = _first(known, told, of_warnings=True) or _first(known, told, of_warnings=False)
    if rule is not None and rule.broad and not warned and (meant := meaning(told, raised=True)) is not None:
        return _in_general(text, meant)
    if rule is not None:
        return _of_rule(rule, text, told, warned=warned)
    if ended := exit_in(told):
        ending, local_rank = ended
        return Sighting(
            source="",
            text=text,
            failure_class=ending.failure_class,
            role=ending.role,
            rank=local_rank,
            weak=True,
            by_abort=ending.by_abort,
        )
    if not warned and _EXCEPTION.search(told) and not _is_frame(text):
        return _in_general(text, meaning(told, raised=True))
    return None


def _in_general(text: str, meant: Meaning | None) -> Sighting:
    """An exception or last words that no table knows: what they suggest, else an error of the program."""
    failure_class, role = meant or ("user_code", ROOT)
    return Sighting(source="", text=text, failure_class=failure_class, role=role, generic=role == ROOT)


def _first(known: Iterable[Rule], told: str, *, of_warnings: bool) -> Rule | None:
    """The first row that a line is evidence of, among the warnings or the others."""
    rules = (rule for rule in known if (rule.role == WARNING) is of_warnings)
    return next((rule for rule in rules if rule.matches(told)), None)


def _of_rule(rule: Rule, text: str, told: str, *, warned: bool) -> Sighting:
    believed = rule.role in (WARNING, CONTEXT) or rule.at_warning or not warned
    if rule.role == CASCADE and _AT_INFO.search(text[:200]):
        believed = False
    return Sighting(
        source="",
        text=text,
        failure_class=rule.failure_class if believed else NOT_A_FAILURE,
        role=rule.role if believed else WARNING,
        certain=rule.certain and not (rule.role == ROOT and _is_doubtful(rule, told)),
        weak=rule.weak,
        generic=rule.vague,
        points_at=_number(_PEER_RANK.search(text)) if rule.role == CASCADE else None,
    )


def _is_doubtful(rule: Rule, told: str) -> bool:
    """Whether the things and troubles that the line names as well suggest another class."""
    meant = meaning(told, raised=True)
    return meant is not None and meant.failure_class != rule.failure_class


def _placed(found: Sighting, text: str, where: Where, number: int, moment: Moment | None) -> Sighting:
    rank = _number(_RANK.search(text))
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


def _number(match: re.Match[str] | None) -> int | None:
    return next((int(group) for group in match.groups() if group), None) if match else None


def _is_frame(text: str) -> bool:
    """A line of a traceback that is no exception."""
    return text.lstrip().startswith(("File ", "raise ", "frame #", "except", "class ", "import ", "from "))


def _by_needle() -> dict[str, Sequence[int]]:
    """The rows of the tables by needle, and needles of exits and exceptions, which have no row."""
    table: dict[str, list[int]] = {n: [] for n in (*EXIT_NEEDLES, *WORD_NEEDLES, *EXCEPTION_NEEDLES)}
    for place, rule in enumerate(RULES):
        for needle in rule.needles:
            table.setdefault(needle, []).append(place)
    return {needle: tuple(rows) for needle, rows in table.items()}


_NEEDLES = Needles(_by_needle())
