"""From what a job reported of one failed attempt to its diagnosis: pure.

The lines that ranks, launcher, kernel and scheduler gave as evidence are read like a log; how
the attempt ended (an exception, a signal, an exit code, a status) stands beside them as facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ett_core.accounting.account import FailureAccount
from ett_core.causes import sender_in, signal_name
from ett_core.evidence_log import EvidenceLine, senders_in
from ett_core.failures.certainty import TAKEN_AWAY
from ett_core.failures.classes import CLASSES, LIKELY, UNKNOWN
from ett_core.failures.exits import OWN_STOP, of_exit
from ett_core.failures.judge import Diagnosis, judge
from ett_core.failures.lines import Sighting
from ett_core.failures.rule import ROOT
from ett_core.failures.scan import Where, scan
from ett_core.failures.stacks import waited_for
from ett_core.failures.stalled_in import StalledIn, stalled_in
from ett_core.stopped_ranks import stops_in

FACT = "attempt"
KERNEL = "kernel"
STACK = "stack"
"""What a process was doing: names of functions, which are no words about what happened."""
_SPEAKER = re.compile(r"\[rank(\d{1,6})\]:|last output of rank (\d{1,6}):")
_STOPPED_BY = re.compile(r"rank \d{1,6} was stopped by SIG[A-Z]{1,10} \(sent by ")
_STOOD_STILL = ("hang", "checkpoint_stall", "compile_slow")
_OF_STATUS = {"preempted": "preempted", "timed_out": "time_limit", "cancelled": "user_cancelled"}
_STATUS_WORDS = {
    "preempted": "the attempt was reported as preempted",
    "timed_out": "the attempt was reported as having reached its time limit",
    "cancelled": "the attempt was reported as cancelled",
}


def diagnose(failure: FailureAccount, evidence: Sequence[EvidenceLine]) -> Diagnosis:
    """The cause of a failed attempt."""
    seen = _with_status([*_of_evidence(evidence), *_of_facts(failure, evidence)], failure)
    sightings = _without_neighbours(seen)
    found = judge([_dated(sighting) for sighting in sightings])
    if found.failure_class == "not_a_failure":
        found = judge([_fact(failure, _last_words(failure), UNKNOWN, weak=True)])
    if found.failure_class in ("hang", "collective_timeout") and (inside := stalled_in(evidence)) is not None:
        found = _in_phase(found, inside)
    stopped = next((stop for stop in stops_in(evidence) if stop.is_held), None)
    if found.failure_class == "collective_timeout" and stopped is not None:
        found = _in_phase(found, StalledIn("straggler", stopped.rank, stopped.text))
    rank = failure.rank if found.rank is None else found.rank
    if rank is None and found.failure_class in _STOOD_STILL:
        stacks = (line.text for line in evidence if line.source == STACK)
        rank = waited_for(stacks) if stopped is None else stopped.rank
    return msgspec.structs.replace(found, rank=rank, node=found.node or failure.node)


def _in_phase(found: Diagnosis, inside: StalledIn) -> Diagnosis:
    """A job that stood still, as what it stood still in: a save, a compilation, a rank that was stopped."""
    known = CLASSES[inside.failure_class]
    return msgspec.structs.replace(
        found,
        failure_class=known.name,
        domain=known.domain,
        retry=known.retry,
        role=ROOT,
        confidence=LIKELY,
        rank=inside.rank if inside.rank is not None else found.rank if found.role == ROOT else None,
        message=inside.text,
    )


def _of_evidence(evidence: Sequence[EvidenceLine]) -> Iterator[Sighting]:
    for line in evidence:
        if line.source == STACK:
            continue
        rank = line.rank if line.rank >= 0 else _speaker(line.text)
        where = Where(source=line.source, rank=rank, node=line.node, time=line.time)
        role = OWN_STOP.role if _STOPPED_BY.match(line.text) else None
        for sighting in scan(line.text.encode(), where):
            own = role if role and sighting.failure_class == OWN_STOP.failure_class else sighting.role
            yield msgspec.structs.replace(sighting, time=line.time, order_s=line.time, role=own)


def _without_neighbours(sightings: list[Sighting]) -> list[Sighting]:
    """Without crashes of which the kernel alone tells: it speaks of every process of a machine."""
    of_kernel = [s for s in sightings if s.source == KERNEL and s.failure_class == "native_crash"]
    if any(s.failure_class == "native_crash" for s in sightings if s.source != KERNEL):
        return sightings
    return [s for s in sightings if s not in of_kernel]


def _speaker(text: str) -> int | None:
    """The rank whose output a launcher passed on: it stands before the first line of several.

    >>> _speaker("[rank1]: Traceback (most recent call last):"), _speaker("last output of rank 3:")
    (1, 3)
    """
    found = _SPEAKER.match(text)
    return int(found[1] or found[2]) if found else None


def _of_facts(failure: FailureAccount, evidence: Sequence[EvidenceLine]) -> Iterator[Sighting]:
    if failure.exception:
        message = failure.message or ""
        said = message.startswith(failure.exception)
        text = message if said else f"{failure.exception}: {message}"
        where = Where(source=FACT, rank=failure.rank, node=failure.node, time=failure.time)
        yield from (msgspec.structs.replace(s, order_s=failure.time) for s in scan(text.encode(), where))
    code = -failure.signal if failure.signal else failure.exit_code
    ending = of_exit(code) if code else None
    if ending is not None and failure.signal and _is_sender_known(failure, failure.signal, evidence):
        ending = OWN_STOP
    if ending is not None:
        text = f"signal {failure.signal}" if failure.signal else f"exit code {failure.exit_code}"
        yield msgspec.structs.replace(
            _fact(failure, f"ended with {text}", ending.failure_class, weak=True),
            role=ending.role,
            by_abort=ending.by_abort,
        )


def _with_status(seen: list[Sighting], failure: FailureAccount) -> list[Sighting]:
    """With what the status says; where a line says how the hardware was taken back, it bears that out."""
    if failure.status not in _OF_STATUS:
        return seen
    how = (s for s in seen if s.failure_class in TAKEN_AWAY - {"preempted"} and s.role == ROOT and not s.weak)
    named = next(how, None) if failure.status == "preempted" else None
    if named is not None:
        return [msgspec.structs.replace(s, certain=True) if s is named else s for s in seen]
    return [*seen, _fact(failure, _STATUS_WORDS[failure.status], _OF_STATUS[failure.status], weak=False)]


def _is_sender_known(failure: FailureAccount, number: int, evidence: Sequence[EvidenceLine]) -> bool:
    """A launcher knows who sent the signal, whether it or the rank spoke first."""
    return bool(
        sender_in(failure.message) or senders_in(evidence).get((str(failure.rank), signal_name(number)))
    )


def _fact(failure: FailureAccount, text: str, failure_class: str, *, weak: bool) -> Sighting:
    return Sighting(
        source=FACT,
        text=text,
        failure_class=failure_class,
        role=ROOT,
        rank=failure.rank,
        node=failure.node,
        time=failure.time,
        certain=not weak,
        weak=weak,
    )


def _last_words(failure: FailureAccount) -> str:
    return failure.message or ("nobody reported an end: it fell silent" if failure.silent else "it ended")


def _dated(sighting: Sighting) -> Sighting:
    """All that was reported of one attempt has a moment, by which it is put into order."""
    return msgspec.structs.replace(sighting, order_s=sighting.time)
