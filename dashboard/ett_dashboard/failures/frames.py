"""Failures to tables: the list, the classes, the nodes, and the evidence of one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from ett_core.failures import CLASSES, Diagnosis
from ett_core.fleet.nodes import Node
from ett_dashboard.failures.rows import FailureBucket, JobFailure
from ett_dashboard.failures.words import place
from ett_dashboard.rows import EvidenceRow
from ett_dashboard.words import plain

UNKNOWN = "unknown"
DOMAINS = ("workload", "infrastructure", "platform", UNKNOWN)
ROLES = ("root", "cascade", "teardown", "warning", "context")
"""Roles of a line, the one that explains most first."""
MOST_CHARACTERS = 8000
NEAR_S = 1.0
"""A line of a diagnosis and the same line of a log are stamped no further apart than this."""


class EvidenceLine(msgspec.Struct, frozen=True):
    """One piece of evidence: `after_s` seconds from the first root line, else from the failure.

    `role` is empty where the diagnosis does not rest on it; `where` says rank and node in words.
    """

    time: float
    after_s: float
    rank: int | None
    where: str
    source: str
    role: str
    text: str


class Part(msgspec.Struct, frozen=True):
    """Failures of one domain in one stretch of time; `classes` by number, most first."""

    begin: float
    end: float
    domain: str
    count: int
    lost_accelerator_s: float
    classes: tuple[tuple[str, int], ...]


def evidence_lines(failure: JobFailure, most_characters: int = MOST_CHARACTERS) -> list[EvidenceLine]:
    """The evidence of all ranks in order of time, each with the role that the diagnosis gives it.

    Of a text longer than `most_characters` the end is kept, where a traceback says what it is.
    """
    rows = sorted(failure.evidence, key=lambda row: row.time)
    told = [(row, role_of(row, failure.diagnosis)) for row in rows]
    zero = next((row.time for row, role in told if role == ROLES[0]), failure.time)
    return [
        EvidenceLine(
            time=row.time,
            after_s=row.time - zero,
            rank=row.rank,
            where=place(row.rank, row.node),
            source=plain(row.source or "", 40),
            role=role,
            text="\n".join(plain(line, 1000) for line in _ending(row.text, most_characters).splitlines()),
        )
        for row, role in told
    ]


def role_of(row: EvidenceRow, diagnosis: Diagnosis) -> str:
    """The strongest role of the lines of a piece of evidence; empty where none is part of the diagnosis."""
    lines = {line.strip() for line in row.text.splitlines()}
    roles = {
        known.role
        for known in diagnosis.evidence
        if (known.time is None or abs(known.time - row.time) <= NEAR_S) and known.text.strip() in lines
    }
    return next((role for role in ROLES if role in roles), "")


def _ending(text: str, most: int) -> str:
    """The end of a text, of so many characters at most.

    >>> _ending("abcdef", 4), _ending("abc", 4)
    ('…def', 'abc')
    """
    return text if len(text) <= most else f"…{text[1 - most :]}"


def domain_of(failure_class: str) -> str:
    """Whose a class of failures is."""
    known = CLASSES.get(failure_class)
    return known.domain if known and known.domain in DOMAINS else UNKNOWN


def by_domain(buckets: Sequence[FailureBucket]) -> list[Part]:
    """Buckets by class to the same by domain, without the empty ones."""
    parts = []
    for bucket in buckets:
        members: dict[str, list[str]] = defaultdict(list)
        for name in sorted(bucket.counts, key=lambda name: (-bucket.counts[name], name)):
            members[domain_of(name)].append(name)
        parts += [
            Part(
                begin=bucket.begin,
                end=bucket.end,
                domain=domain,
                count=sum(bucket.counts[name] for name in names),
                lost_accelerator_s=sum(bucket.lost_accelerator_s.get(name, 0.0) for name in names),
                classes=tuple((name, bucket.counts[name]) for name in names),
            )
            for domain, names in members.items()
        ]
    return parts


def classes_of(node: Node) -> str:
    """The classes of a node's failures with their number."""
    return ", ".join(f"{name} {count}" for name, count in node.classes.items())
