"""What one line of a log says of a failure: by a row of a table, an exit, or an unknown exception. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from ett_core.failures.classes import NOT_A_FAILURE
from ett_core.failures.exits import EXIT_NEEDLES, WORD_NEEDLES, exit_in
from ett_core.failures.general import Meaning, meaning
from ett_core.failures.needles import LINE_LIMIT, Needles
from ett_core.failures.rule import CASCADE, CONTEXT, ROOT, WARNING, Rule
from ett_core.failures.rules import RULES
from ett_core.failures.speakers import said, spoken, unnamed

EXCEPTION_NEEDLES = ("error", "exception", "notfound:", "failure:", "timeout:")

_EXCEPTION = re.compile(
    r"(?:^|[\s:\]>.])(?!Warning)([A-Z]\w{0,60}(?:Error|Exception|NotFound|Failure|Timeout))"
    r"(?: \(see above for traceback\))?(?::|\s*$)"
    r"|(?:^|[\s\]])Exception: "
    r"|(?:^|[\s:\]>])(?:[a-z_]\w{0,40}\.){1,6}(?:[Ee]rror|timeout|gaierror|TimeoutExpired)(?::|\s*$)",
    re.ASCII,
)
AT_WARNING = re.compile(
    r"(?:^|[\s\[:])W(?:\d{3,4})? (?=[\w\d])|\bWARNING\b|(?<!NCCL )\bWARN\b|^warn(?:ing)?:|\bwarnings\.warn\b"
    r"|\bNCCL INFO\b|\b[A-Z][A-Za-z]{2,40}Warning: ",
    re.ASCII,
)
_LAST_TRY = re.compile(r"\bretrying \(?(\d{1,4}) ?(?:/|of) ?\1\b.*", re.ASCII)
"""There is no further try."""
_ENDS_RUN = re.compile(
    r"\b(?:ending|stopping|aborting|terminating|halting) (?:the )?(?:training|run|job|program|process)\b"
    r"|\bexiting\s{0,4}(?:$|[.!,;])",
    re.IGNORECASE | re.ASCII,
)
"""Whatever its level, it ends the run."""
_AT_INFO = re.compile(r"^\[?I\d{4} |\bI tensorflow/", re.ASCII)
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
_PEER_RANK = re.compile(
    r"localRank (\d{1,6})|(?:from|peer|remote|by|waiting for) ranks? \[?(\d{1,6})|from \[(\d{1,6})\] via",
    re.IGNORECASE | re.ASCII,
)


_SECOND_HAND = re.compile(
    r"\b(?:caused by|due to|because of) (?:an? )?(?:previous|earlier)\b|^(?:/\S{1,40}/)?\w{0,3}sh: (?!line )",
    re.IGNORECASE | re.ASCII,
)
"""Tells of what was found elsewhere, or of one command of a script."""
_ARROW = re.compile(r"^-{2,8}> {0,4}\d{1,6} ")
"""How a notebook shows the line of a frame that raised."""
_FRAMES = ("File ", "raise ", "frame #", "except", "class ", "import ", "from ")


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """One line (or fact) that may explain a failure, and what it says.

    `line` counts from 1 (0 for a fact that stands in no file), `time` is Unix seconds where it is
    known, `order_s` sorts sightings where it is known. `rank` is the one that spoke, `points_at`
    the one that the text names as the cause. `generic` marks what the same traceback may say
    better, such as an exception that no table knows, `weak` what any better evidence goes before,
    `by_abort` a process that ended itself, `by_exit` what only its status says.
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
    by_exit: bool = False


def read_line(line: str, rules: Sequence[Rule] = RULES) -> Sighting | None:
    """What one line says; None where it says nothing of a failure.

    >>> read_line("RuntimeError: CUDA error: out of memory").failure_class
    'gpu_busy'
    """
    text = line[:LINE_LIMIT]
    told = _LAST_TRY.sub(" ", _ADVICE.sub(" ", unnamed(text)))
    places = sorted(NEEDLES.meant_by(told.lower()))
    warned = AT_WARNING.search(text[:200]) is not None and not (
        _LAST_TRY.search(text) or _ENDS_RUN.search(text)
    )
    known = [rules[place] for place in places]
    rule = _first(known, told, of_warnings=True) or _first(known, told, of_warnings=False)
    if rule is not None and rule.broad and not warned and (meant := meaning(told, raised=True)) is not None:
        return in_general(text, meant)
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
            by_exit=True,
        )
    if not warned and _EXCEPTION.search(told) and not _is_frame(text):
        return in_general(text, meaning(told, raised=True))
    return None


def in_general(text: str, meant: Meaning | None) -> Sighting:
    """An exception or last words that no table knows: what they suggest, else an error of the program."""
    failure_class, role = meant or ("user_code", ROOT)
    return Sighting(source="", text=text, failure_class=failure_class, role=role, generic=role == ROOT)


def _first(known: Iterable[Rule], told: str, *, of_warnings: bool) -> Rule | None:
    """The first row that a line is evidence of, among the warnings or the others."""
    rules = (rule for rule in known if (rule.role == WARNING) is of_warnings)
    return next((rule for rule in rules if rule.matches(told)), None)


def _of_rule(rule: Rule, text: str, told: str, *, warned: bool) -> Sighting:
    believed = rule.role in (WARNING, CONTEXT) or rule.at_warning or not warned
    if rule.role == CASCADE and _AT_INFO.search(said(text)):
        believed = False
    return Sighting(
        source="",
        text=text,
        failure_class=rule.failure_class if believed else NOT_A_FAILURE,
        role=rule.role if believed else WARNING,
        certain=rule.certain and not (rule.role == ROOT and _is_doubtful(rule, told)),
        weak=rule.weak,
        generic=rule.vague,
        points_at=number_in(_PEER_RANK.search(text)) if rule.role == CASCADE else None,
    )


def _is_doubtful(rule: Rule, told: str) -> bool:
    """Whether the line tells of what others said, or names things and troubles that suggest another class."""
    if _SECOND_HAND.search(spoken(told)):
        return True
    meant = meaning(told, raised=True)
    return meant is not None and meant.failure_class != rule.failure_class


def number_in(match: re.Match[str] | None) -> int | None:
    """The number that one of the groups of a match holds."""
    return next((int(group) for group in match.groups() if group), None) if match else None


def _is_frame(text: str) -> bool:
    """A line of a traceback that is no exception."""
    line = _ARROW.sub("", spoken(text)).lstrip()
    return line.startswith(_FRAMES)


def _by_needle() -> dict[str, Sequence[int]]:
    """The rows of the tables by needle, and needles of exits and exceptions, which have no row."""
    table: dict[str, list[int]] = {n: [] for n in (*EXIT_NEEDLES, *WORD_NEEDLES, *EXCEPTION_NEEDLES)}
    for place, rule in enumerate(RULES):
        for needle in rule.needles:
            table.setdefault(needle, []).append(place)
    return {needle: tuple(rows) for needle, rows in table.items()}


NEEDLES = Needles(_by_needle())
