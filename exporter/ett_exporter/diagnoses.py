"""Why the failures of one job happened: judged again only where a failure or its evidence has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ett_core.accounting import FailureAccount
from ett_core.archive import IN_MEMORY, Archive
from ett_core.evidence_log import EvidenceLog
from ett_core.failures import Diagnosis, diagnose
from ett_core.fleet.endings import cause_words
from ett_core.packed_records import Packed, PackedRecords


class Diagnoses:
    """What was judged last; held by one thread at a time."""

    __slots__ = ("_archive", "_changes", "_failures", "_found", "_told", "causes")

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._failures: Sequence[FailureAccount] = ()
        self._found: Sequence[Diagnosis] = ()
        self._told: Sequence[int] = ()
        """Of each failure how much evidence was told of its attempt."""
        self._changes = 0
        self.causes: Mapping[int, str] = {}
        """By place among the failures the causes in short words to which a launcher adds something.

        Attempts may share a number, where a restart forgot to count.
        """

    def of(self, failures: Sequence[FailureAccount], evidence: EvidenceLog) -> Sequence[Diagnosis]:
        """Why each of the failures happened, in their order."""
        if evidence.changes != self._changes or failures != self._failures:
            self._judge(failures, evidence)
        return self._found

    def _judge(self, failures: Sequence[FailureAccount], evidence: EvidenceLog) -> None:
        known = dict(enumerate(zip(self._failures, self._told, self._found, strict=True)))
        found = []
        causes = {}
        for place, failure in enumerate(failures):
            before, told, why = known.get(place, (None, -1, None))
            if why is None or before != failure or told != evidence.told(failure.attempt):
                lines = evidence.lines(failure.attempt)
                why = diagnose(failure, lines)
                cause = cause_words(failure, why, lines)
                if cause != cause_words(failure, why):
                    causes[place] = cause
            elif place in self.causes:
                causes[place] = self.causes[place]
            found.append(why)
        self._found = PackedRecords(Packed(Diagnosis, found[:-1], self._archive), found[-1:])
        self._told = tuple(evidence.told(failure.attempt) for failure in failures)
        self._failures, self._changes, self.causes = failures, evidence.changes, causes
