"""Why the failures of one job happened: judged again only where a failure or its evidence has changed."""

from __future__ import annotations

from collections.abc import Sequence

from ett_core.accounting import FailureAccount
from ett_core.evidence_log import EvidenceLog
from ett_core.failures import Diagnosis, diagnose
from ett_core.packed_records import Packed, PackedRecords


class Diagnoses:
    """What was judged last; held by one thread at a time."""

    __slots__ = ("_changes", "_failures", "_found", "_told")

    def __init__(self) -> None:
        self._failures: Sequence[FailureAccount] = ()
        self._found: Sequence[Diagnosis] = ()
        self._told: Sequence[int] = ()
        """Of each failure how much evidence was told of its attempt."""
        self._changes = 0

    def of(self, failures: Sequence[FailureAccount], evidence: EvidenceLog) -> Sequence[Diagnosis]:
        """Why each of the failures happened, in their order."""
        if evidence.changes != self._changes or failures != self._failures:
            self._judge(failures, evidence)
        return self._found

    def _judge(self, failures: Sequence[FailureAccount], evidence: EvidenceLog) -> None:
        known = {
            failure.attempt: (failure, told, why)
            for failure, told, why in zip(self._failures, self._told, self._found, strict=True)
        }
        found = []
        for failure in failures:
            before, told, why = known.get(failure.attempt, (None, -1, None))
            if why is None or before != failure or told != evidence.told(failure.attempt):
                why = diagnose(failure, evidence.lines(failure.attempt))
            found.append(why)
        self._found = PackedRecords(Packed(Diagnosis, found[:-1]), found[-1:])
        self._told = tuple(evidence.told(failure.attempt) for failure in failures)
        self._failures, self._changes = failures, evidence.changes
