"""That something ended, where no table knows the words: read from the end of a log. Pure.

A traceback, a fatal or aborting last word, an error after which nothing goes on: the log tells of a
failure of a class that is not known. What is followed by progress or by a good end has ended nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ett_core.failures.exits import is_report
from ett_core.failures.general import Meaning, meaning
from ett_core.failures.needles import LINE_LIMIT
from ett_core.failures.speakers import parted, spoken
from ett_core.failures.survived import IGNORED

TAIL_BYTES = 32_768
"""Last words are looked for in this much of a log: what is older was survived."""
STEPS_OF_OTHERS = 4
"""So long others go on only where one went on too, as no rank trains alone; less, they may not know yet."""

_TRACEBACK = re.compile(r"Traceback \(most recent call last\)", re.ASCII)
_RAISED = re.compile(
    r"^(?:\[?(?:rank)?\d{1,6}\]?[:>] ?|\w{1,20}: )?"
    r"(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{1,60}(?:: .*)?$",
    re.ASCII,
)
_END = re.compile(
    r"(?-i:\bFATAL\b|\bCRITICAL\b|\bPANIC\b|^(?:\[\w{1,12}\]:)?\[?[EFC]\d{4}[ \]]|\bERROR\b)"
    r"|\bfatal: |\bfatal error\b"
    r"|\babort(?:ed|ing)\b|\bpanic(?:ked)?\b|\b(?:core dumped|dumped core)\b|\bcrashed\b|\bdied\b"
    r"|^exception in \w|\bcheck failed: |\b(?:daemon|server)\b.{0,20}\bexited\b(?!.{0,40}\b0\b)"
    r"|^error: |\bunhandled exception\b|\bnon-?zero (?:exit )?(?:status|code)\b"
    r"|\bterminated (?:abnormally|unexpectedly|with (?:an )?errors?\b)|\bended abnormally\b"
    r"|\bFailed with result\b|\|FAILED\|"
    r"|\bgiving up\b|\b(?:cannot|can't|unable to) continue\b|\bshutting down due to\b"
    r"|\bassertion\b.{0,200}\bfailed\b"
    r"|\b(?:exiting|terminating|stopping|bailing out)\b.{0,80}\b(?:error|failure|failed|unrecoverable)\b"
    r"|\b(?:error|failure|failed|unrecoverable)\b.{0,120}\b(?:exiting|terminating|stopping|bailing out)\b"
    r"|\b(?:job|run|training|task|step|worker|process|program|launch|rank \d{1,6})\b.{0,40}(?<! 0) failed\b",
    re.IGNORECASE | re.ASCII,
)
_SURVIVED = re.compile(
    r"(?<!not )(?<!longer )\bretry(?:ing)?\b(?! count)"
    r"|\bcontinuing\b|\bignor(?:ed|ing)\b|\bskipp(?:ed|ing)\b|\bfalling back\b"
    r"|\brecovered\b|\bexit code[ :=]{0,3}0\b",
    re.IGNORECASE | re.ASCII,
)
_CALM = re.compile(
    r"(?<![=\w])(?:INFO|DEBUG|NOTICE|TRACE)\b|^(?:\[\w{1,12}\]:)?\[?[IVD]\d{4}[ \]]"
    r"|\blevel\W{1,4}(?:info|debug)\b|\d: I \S{1,200}:\d",
    re.ASCII,
)
"""What a program says in the course of things."""
_BY_THE_WAY = re.compile(r"[IVD]\d{4} \d\d:\d\d:\d\d\.\d", re.ASCII)
"""How a component of a cluster says what is no end, whatever its words."""
_OF_A_COMMAND = re.compile(
    r"(?:cat|chmod|chown|cp|df|du|find|grep|ln|ls|mkdir|mv|rm|rmdir|sed|stat|touch): ", re.ASCII
)
"""What a command of a script complains of: the script decides whether that ends anything."""
_GOES_ON = re.compile(
    r"\b(?:step|epoch|iter|iteration|batch)\b\W{0,3}\d|\bloss\b\W{0,3}\d|\d{1,3}%\|"
    r"|\b(?:complete|completed|finished|succeeded|successful|successfully|resuming|resumed|done)\b",
    re.IGNORECASE | re.ASCII,
)


class LastWords(NamedTuple):
    """A line by which something ended: where it begins in the log, what it says and suggests."""

    start: int
    text: str
    is_raised: bool
    """It is the exception below a traceback."""
    meant: Meaning | None
    """What its words suggest, None where they suggest nothing."""
    is_end: bool = True
    """Its words say that something ended."""

    @property
    def worth(self) -> tuple[bool, bool, bool]:
        """The larger, the more it tells."""
        return (self.is_end and self.meant is not None, self.is_raised, self.meant is not None)


def last_words(data: bytes, harmless: Callable[[str], bool] = lambda _: False) -> LastWords | None:
    r"""The line near the end of a log that tells best how something ended there; None where nothing did.

    Lines that are `harmless` end nothing, whatever their words.

    >>> last_words(b"step 1\nTraceback (most recent call last):\n  File 'x'\nacme.Boom: no fuel\n").text
    'acme.Boom: no fuel'
    >>> last_words(b"FATAL: cannot continue\n").meant is None
    True
    >>> last_words(b"the walltime of the job was exceeded\n").meant.failure_class
    'time_limit'
    >>> last_words(b"Traceback (most recent call last):\n  File 'x'\nacme.Boom: no fuel\nstep 2 loss 0.1\n")
    """
    found: list[LastWords] = []
    traceback, others = False, 0
    for start, whole in _without_ignored(_tail(data)):
        speaker, line = parted(whole)
        if traceback and (spoken(line)[:1].isspace() or not line):
            continue
        if _SURVIVED.search(line):
            found, traceback = [], False
        elif traceback and _RAISED.match(line):
            traceback, others = False, 0
            found.append(LastWords(start, whole, is_raised=True, meant=meaning(line, raised=True)))
        elif _TRACEBACK.search(line) or (_END.search(line) and not _BY_THE_WAY.match(line)):
            if not harmless(whole):
                others = 0
                traceback = _TRACEBACK.search(line) is not None
                meant = None if is_report(line) else meaning(line, raised=True)
                found.append(LastWords(start, whole, is_raised=False, meant=meant))
        elif _GOES_ON.search(line):
            others += 1
            if not found or others >= STEPS_OF_OTHERS or parted(found[-1].text)[0] in ("", speaker):
                found, traceback = [], False
        elif not _is_by_the_way(line) and (meant := meaning(line, raised=False)) and not harmless(whole):
            found.append(LastWords(start, whole, is_raised=False, meant=meant, is_end=False))
    return max(found, key=lambda each: each.worth, default=None)


def _is_by_the_way(line: str) -> bool:
    return _OF_A_COMMAND.match(line) is not None or _CALM.search(line[:200]) is not None


def _without_ignored(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines but those of exceptions that Python ignored: the line that says so, and the traceback below."""
    awaited, inside = False, False
    for start, line in lines:
        if line.startswith(IGNORED):
            awaited, inside = True, False
        elif awaited and _TRACEBACK.search(line):
            awaited, inside = False, True
        elif inside:
            inside = line[:1].isspace()
        else:
            awaited = False
            yield start, line


def _tail(data: bytes) -> Iterator[tuple[int, str]]:
    """The last lines, from a beginning on, and where each begins; of a line of any length its beginning."""
    start = max(len(data) - TAIL_BYTES, 0)
    if start:
        start = data.find(b"\n", start) + 1 or len(data)
    for line in data[start:].splitlines(keepends=True):
        yield start, line[:LINE_LIMIT].decode("utf-8", "replace").rstrip()
        start += len(line)
