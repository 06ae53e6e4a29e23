"""A diagnosis as text for people: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import takewhile
from textwrap import wrap

from ett_core.failures import CLASSES, Diagnosis, Evidence
from ett_core.failures.classes import NOT_A_FAILURE, UNKNOWN
from ett_core.failures.judge import CERTAIN
from ett_core.failures.rule import WARNING
from ett_core.failures.words import DOMAIN_WORDS, RETRY_WORDS


def report(diagnosis: Diagnosis, width: int) -> str:
    """The whole text."""
    return "\n".join(_lines(diagnosis, width))


def got_over(diagnosis: Diagnosis, succeeded_at: float) -> Diagnosis:
    """The diagnosis of a job that is known to have succeeded: what was found did not end it.

    `succeeded_at`: Unix seconds. The evidence stays, in the roles that it would have had.
    """
    message = f"The job succeeded at {_utc(succeeded_at)} UTC, as its journals tell."
    if diagnosis.failure_class != NOT_A_FAILURE:
        where = f", on {place}" if (place := _where(diagnosis)) else ""
        over = f"{diagnosis.failure_class} ({diagnosis.confidence}){where}"
        message += f" Before that it got over a failure: {over}. 'ett account' tells of each."
    known = CLASSES[NOT_A_FAILURE]
    return Diagnosis(
        known.name, known.domain, WARNING, CERTAIN, known.retry, None, "", diagnosis.evidence, message
    )


def _lines(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    yield headline(diagnosis)
    if diagnosis.message and (diagnosis.evidence or not _says_nothing_of_an_end(diagnosis)):
        yield from wrap(diagnosis.message, width, initial_indent="  ", subsequent_indent="  ")
    if diagnosis.failure_class != NOT_A_FAILURE:
        known = CLASSES[diagnosis.failure_class]
        yield ""
        yield from _told("Meaning", known.meaning, width)
        yield from _told("Whose", DOMAIN_WORDS[diagnosis.domain], width)
        yield from _told("Again", RETRY_WORDS[diagnosis.retry], width)
        yield from _told("Do", known.action, width)
    if diagnosis.evidence:
        yield ""
        yield "Evidence, in time order:"
        shared = _shared_folder([evidence.source for evidence in diagnosis.evidence])
        for evidence in diagnosis.evidence:
            yield _evidence_line(evidence, shared, width)


def headline(diagnosis: Diagnosis) -> str:
    """The cause in one line.

    >>> from ett_core.failures import judge, scan
    >>> headline(judge(scan(b"[rank2]: KeyError: 'x'")))
    'Cause: user_code (likely), on rank 2.'
    >>> headline(judge(scan(b"Connection closed by localRank 2")))
    'Cause: not in these logs. What they show followed from elsewhere (peer_failure); look at rank 2.'
    """
    where = _where(diagnosis)
    if _says_nothing_of_an_end(diagnosis):
        return "No failure: nothing in these logs says that the job ended."
    if diagnosis.failure_class == NOT_A_FAILURE:
        return "No failure: it ended well."
    if diagnosis.failure_class == UNKNOWN:
        look = f"; look at {where}" if where else ""
        return f"Cause: unknown. It ended, and nothing in these logs tells why{look}."
    if diagnosis.role == "cascade":
        look = f"; look at {where}" if where else ""
        followed = f"What they show followed from elsewhere ({diagnosis.failure_class})"
        return f"Cause: not in these logs. {followed}{look}."
    return f"Cause: {diagnosis.failure_class} ({diagnosis.confidence}){f', on {where}' if where else ''}."


def _says_nothing_of_an_end(diagnosis: Diagnosis) -> bool:
    return diagnosis.failure_class == NOT_A_FAILURE and diagnosis.confidence != CERTAIN


def _where(diagnosis: Diagnosis) -> str:
    rank = "" if diagnosis.rank is None else f"rank {diagnosis.rank}"
    node = f"node {diagnosis.node}" if diagnosis.node else ""
    return ", ".join(part for part in (rank, node) if part)


def _told(name: str, text: str, width: int) -> list[str]:
    return wrap(text, width, initial_indent=f"{name + ':':<9}", subsequent_indent=" " * 9)


def _shared_folder(sources: Sequence[str]) -> int:
    """Length of the folder that all sources lie in, which need not be shown on every line.

    >>> _shared_folder(["run/a/0.log", "run/b/0.log"]), _shared_folder(["run/0.log"]), _shared_folder(["-"])
    (4, 4, 0)
    """
    folders = [source.split("/")[:-1] for source in sources]
    shared = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return sum(len(names[0]) + 1 for names in shared)


def _evidence_line(evidence: Evidence, shared: int, width: int) -> str:
    at = "" if evidence.time is None else f"{_utc(evidence.time)} "
    source = evidence.source[shared:]
    where = f"{source}:{evidence.line}" if evidence.line else source
    line = f"  {evidence.role:<8} {at}{where}  {evidence.text}"
    return line if len(line) <= width else line[: width - 1] + "…"


def _utc(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, timezone.utc):%Y-%m-%d %H:%M:%S}"
