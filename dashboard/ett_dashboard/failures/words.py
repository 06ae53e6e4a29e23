"""Failures in words: what they cost, what struck many, whose a failure is and what to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from ett_core.failures import CLASSES, Diagnosis
from ett_core.failures.words import DOMAIN_WORDS, REPEATED_WORDS, RETRY_WORDS, chance_words
from ett_core.fleet.nodes import Node
from ett_core.fleet.outbreaks import Outbreak
from ett_dashboard.failures.rows import FailureGroup, Failures, JobFailure
from ett_dashboard.words import Sentence, accelerator_hours, compact, many, plain, ratio, when

LAUNCHER = "launcher"
ROLE_WORDS: Mapping[str, str] = {
    "root": "explains the failure",
    "cascade": "followed from it",
    "teardown": "was stopped in the end",
    "warning": "came before, and may have to do with it",
    "context": "says what was going on",
}
"""What a line of evidence is to its failure."""


def fleet_sentence(answer: Failures) -> Sentence:
    """What failures cost, and what to do about the class that costs most.

    The groups of the answer must be those of `failure_class` in the order of what they lost.
    """
    if not answer.total:
        return Sentence("no failure in this time")
    how = f"{many(answer.total, 'failure')} cost {accelerator_hours(answer.lost_accelerator_s)}"
    worst = max(answer.groups, key=lambda group: group.lost_accelerator_s, default=None)
    if worst is None or not worst.lost_ratio:
        return Sentence(how)
    alone = " alone" if len(answer.groups) > 1 else ""
    share = f"{worst.key or 'an unknown class'}{alone} made up {ratio(worst.lost_ratio)}"
    return Sentence(f"{how}; {share}", action(worst.key))


def struck(group: FailureGroup) -> str:
    """How many failures of how many jobs, as far as that was counted.

    >>> struck(FailureGroup(key="", count=2, jobs=1, lost_accelerator_s=0.0))
    '2 failures of 1 job'
    """
    count = many(group.count, "failure")
    return count if group.jobs is None else f"{count} of {many(group.jobs, 'job')}"


def outbreak_sentence(outbreak: Outbreak, zone: tzinfo) -> Sentence:
    """Which jobs a class struck, when, and how unusual that is."""
    owners = f" of {many(len(outbreak.owners), 'team')}" if outbreak.owners else ""
    since = when(outbreak.since, zone)
    ended = "and goes on" if outbreak.until is None else f"to {when(outbreak.until, zone)}"
    lasting = f"since {since} {ended}" if outbreak.until is None else f"from {since} {ended}"
    usual = "which it had not done before" if outbreak.factor is None else _times(outbreak.factor)
    cost = accelerator_hours(outbreak.lost_accelerator_s)
    how = (
        f"{outbreak.failure_class} struck {many(outbreak.jobs, 'job')}{owners} {lasting}, {usual} "
        f"({chance_words(outbreak.probability)}); {cost} lost"
    )
    return Sentence(how, action(outbreak.failure_class))


def node_sentence(node: Node) -> str:
    """What was seen of a node, and what was to be expected.

    >>> said = Node("n7", "c", 4, 3, 3, 38.0, 0.17, 1.8e-5, True, {"gpu_ecc": 4}, 0.0, 0.0)
    >>> node_sentence(said)
    '3 that may be its own in 38 h of use, 0.17 to be expected (probability 1.8e-05)'
    """
    counted = f"{node.counted} that may be its own"
    if node.expected is None or node.probability is None:
        return f"{counted}; how long it was in use is not known"
    expected = "less than 0.01" if node.expected < 0.01 else f"{node.expected:.2f}"  # noqa: PLR2004 - as shown
    hours = f"{compact(node.node_hours)} h of use"
    return f"{counted} in {hours}, {expected} to be expected ({chance_words(node.probability)})"


def failure_sentence(failure: JobFailure) -> Sentence:
    """What a failure means, whose it is and whether to try again; and what to do."""
    diagnosis = failure.diagnosis
    known = CLASSES.get(diagnosis.failure_class)
    meaning = known.meaning.rstrip(".") if known else "a class that this version does not know"
    whose = DOMAIN_WORDS.get(diagnosis.domain, diagnosis.domain)
    owner = "" if diagnosis.domain == "unknown" else f". It is of {whose} ({diagnosis.confidence})"
    at = _cascade(diagnosis)
    look = f". What is seen followed from elsewhere; look at {at}" if at else ""
    return Sentence(f"{meaning}{owner}{look}{again(failure)}", action(diagnosis.failure_class))


def again(failure: JobFailure) -> str:
    """Whether to try again, as a clause that follows others; empty where nobody knows."""
    if (repeated := REPEATED_WORDS.get(failure.retry)) is not None:
        return f". It came again: {repeated}"
    if failure.retry in ("unknown", "") or failure.retry not in RETRY_WORDS:
        return ""
    return f". Started again it {RETRY_WORDS[failure.retry]}"


def recurrence(failure: JobFailure) -> str:
    """How often a failure had come in a row, in words.

    The first of a row is new; in a crash loop nothing in between was kept.
    """
    row = failure.recurrence
    if row.count == 1:
        return "new"
    same = " on the same node" if row.same_node else " on the same rank" if row.same_rank else ""
    loop = "crash loop, " if row.crash_loop else ""
    return f"{loop}{row.count} in a row{same}"


def action(failure_class: str) -> str:
    """What to do about a class; empty for one that is not known here."""
    known = CLASSES.get(failure_class)
    return known.action if known else ""


def meaning(failure_class: str) -> str:
    """What a class means, in a sentence."""
    known = CLASSES.get(failure_class)
    return known.meaning if known else "A class that this version does not know."


def place(rank: int | None, node: str | None) -> str:
    """Where something was seen.

    >>> place(3, "n1"), place(-1, "n1"), place(None, "")
    ('rank 3 on n1', 'launcher on n1', 'not known')
    """
    who = "" if rank is None else LAUNCHER if rank < 0 else f"rank {rank}"
    on = plain(node, 60) if node else ""
    return " on ".join(part for part in (who, on) if part) or "not known"


def _times(factor: float) -> str:
    return f"{compact(factor)} times as often as around it"


def _cascade(diagnosis: Diagnosis) -> str:
    if diagnosis.role != "cascade" or (diagnosis.rank is None and not diagnosis.node):
        return ""
    return place(diagnosis.rank, diagnosis.node)
