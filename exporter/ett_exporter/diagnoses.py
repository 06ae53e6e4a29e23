"""Why the failures of one job happened: judged again only where a failure or its evidence has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ett_core.accounting import FailureAccount, JobAccount
from ett_core.archive import IN_MEMORY, Archive
from ett_core.evidence_log import EvidenceLog
from ett_core.failures import Diagnosis, diagnose
from ett_core.fleet.attempts import Span, spans_of_failures
from ett_core.fleet.endings import cause_words
from ett_core.packed_records import Packed, PackedRecords


class Told(NamedTuple):
    """What was known of the evidence of a failure: how much, and from when to when it is of its attempt."""

    number: int
    span: Span


class Diagnoses:
    """What was judged last; held by one thread at a time."""

    __slots__ = ("_archive", "_attempts", "_changes", "_failures", "_found", "_told", "causes")

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._failures: Sequence[FailureAccount] = ()
        self._found: Sequence[Diagnosis] = ()
        self._told: Sequence[Told] = ()
        self._attempts = 0
        self._changes = 0
        self.causes: Mapping[int, str] = {}
        """By place among the failures the causes in short words to which a launcher adds something."""

    def of(self, account: JobAccount, evidence: EvidenceLog) -> Sequence[Diagnosis]:
        """Why each of the failures of a job happened, in their order."""
        known = (self._changes, self._attempts)
        if known != (evidence.changes, len(account.attempts)) or account.failures != self._failures:
            self._judge(account, evidence)
        return self._found

    def _judge(self, account: JobAccount, evidence: EvidenceLog) -> None:
        known = dict(enumerate(zip(self._failures, self._told, self._found, strict=True)))
        found = []
        causes = {}
        spans = spans_of_failures(account.attempts)
        tellings = []
        for place, (failure, span) in enumerate(zip(account.failures, spans, strict=True)):
            before, told, why = known.get(place, (None, None, None))
            tellings.append(Told(evidence.told(failure.attempt), span))
            if why is None or before != failure or told != tellings[-1]:
                lines = evidence.lines(failure.attempt, *span)
                why = diagnose(failure, lines)
                cause = cause_words(failure, why, lines)
                if cause != cause_words(failure, why):
                    causes[place] = cause
            elif place in self.causes:
                causes[place] = self.causes[place]
            found.append(why)
        self._found = PackedRecords(Packed(Diagnosis, found[:-1], self._archive), found[-1:])
        self._told, self._attempts = tuple(tellings), len(account.attempts)
        self._failures, self._changes, self.causes = account.failures, evidence.changes, causes
