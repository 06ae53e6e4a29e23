"""Every word and figure of the app with its definition, from where the pages have them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timezone
from html import escape
from typing import Any

import msgspec

from ett_core.components import AREAS, COMPONENTS, area_of, group_of, meaning_of, meaning_of_area
from ett_core.failures import CLASSES, FailureClass
from ett_core.failures.words import DOMAIN_WORDS, RETRY_WORDS
from ett_core.fleet.caches import VERDICTS
from ett_core.fleet.what_if import LEVERS
from ett_dashboard import job_fields, tiles
from ett_dashboard.caches import fields as cache_fields
from ett_dashboard.checkpoints import fields as interval_fields
from ett_dashboard.failures import fields as failure_fields
from ett_dashboard.failures.words import ROLE_WORDS
from ett_dashboard.fleet.tiles import fleet_tiles
from ett_dashboard.job import fields as job_parts
from ett_dashboard.job.tiles import checkpoint_tiles, throughput_tiles
from ett_dashboard.listing import Field
from ett_dashboard.markup import GROUP_TITLES, section
from ett_dashboard.regressions import fields as regression_fields
from ett_dashboard.rows import JobDetail, JobsTogether
from ett_dashboard.tiles import Tile
from ett_dashboard.what_if.words import TITLES

UTC = timezone.utc
NO_JOB = JobDetail(job_id="", state="", start=0.0, end=0.0, wall_s=0.0, components={})


class Definition(msgspec.Struct, frozen=True):
    """A word and what it means; `more` says where it belongs or what to do about it."""

    word: str
    meaning: str
    more: str = ""


class Part(msgspec.Struct, frozen=True):
    """Definitions that belong together."""

    title: str
    note: str
    words: Sequence[Definition]


def parts() -> list[Part]:
    """All definitions, in the order of the page."""
    return [*_of_time(), *_of_failures(), *_of_levers(), *_of_figures()]


def as_html(part: Part) -> str:
    """One part as a table under its heading."""
    rows = "".join(
        f"<tr><td>{escape(one.word)}</td><td>{escape(one.meaning)}</td><td>{escape(one.more)}</td></tr>"
        for one in part.words
    )
    head = f'<table class="ett-list ett-defined" aria-label="{escape(part.title)}">'
    return f"{section(part.title, part.note)}{head}<tbody>{rows}</tbody></table>"


def definition_of(word: str, known: Iterable[Part]) -> Definition | None:
    """The first definition of a word; None where nobody defines it.

    >>> definition_of("gpu_lost", parts()).meaning
    'A GPU no longer answers: it fell off the bus or its firmware stopped.'
    >>> definition_of("love", parts()) is None
    True
    """
    return next((one for part in known for one in part.words if one.word == word), None)


def _of_time() -> list[Part]:
    groups = [Definition(title.lower(), meaning) for title, meaning in GROUP_TITLES.values()]
    components = [
        Definition(name, meaning_of(name), f"{group_of(name)}, {area_of(name)}") for name in COMPONENTS
    ]
    areas = [Definition(area, meaning_of_area(area)) for area in AREAS]
    return [
        Part(
            "Groups of time",
            "ETT% is the effective share of the wall time: what idleness, failure and unknown leave",
            groups,
        ),
        Part(
            "Components", "each second of a job belongs to exactly one; its group, and its area", components
        ),
        Part("Areas of the training cycle", "the same seconds, cut by who looks after them", areas),
    ]


def _of_failures() -> list[Part]:
    classes = [Definition(one.name, one.meaning, _advice(one)) for one in CLASSES.values()]
    domains = [Definition(name, words) for name, words in DOMAIN_WORDS.items()]
    roles = [Definition(role, words) for role, words in ROLE_WORDS.items()]
    return [
        Part("Classes of failures", "whose each is, whether to try again, and what to do", classes),
        Part("Whose a failure is", "", domains),
        Part("Roles of a line of evidence", "what it is to the failure", roles),
    ]


def _advice(one: FailureClass) -> str:
    """Whose a class is, whether to try again, and what to do."""
    again = "" if one.retry == "unknown" else f"; it {RETRY_WORDS[one.retry]}"
    return f"{one.domain}{again}. {one.action}"


def _of_levers() -> list[Part]:
    verdicts = [Definition(verdict, meaning) for verdict, meaning in VERDICTS.items()]
    levers = [Definition(TITLES[key], meaning) for key, meaning in LEVERS.items()]
    return [
        Part("Compile caches of a run", "by hits and by seconds, as a hit alone is no proof", verdicts),
        Part("What-if", "what each lever supposes", levers),
    ]


def _of_figures() -> list[Part]:
    figures: Sequence[tuple[str, Sequence[Tile]]] = (
        ("Figures of the fleet", fleet_tiles(JobsTogether(), {}, "1h", "accelerator")),
        ("Figures of a job", tiles.job_tiles(NO_JOB)),
        ("Throughput of a job", throughput_tiles(NO_JOB)),
        ("Checkpoints of a job", checkpoint_tiles(NO_JOB, None)),
    )
    tables: Sequence[tuple[str, Sequence[Field[Any]]]] = (
        ("Table of jobs", job_fields.fields(0.0)),
        ("Attempts of a job", job_parts.attempts({})),
        ("Ranks of a job", job_parts.ranks()),
        ("Saves of a job", job_parts.saves(UTC)),
        ("Compile caches of a job", job_parts.caches()),
        ("Failures", failure_fields.failures(UTC)),
        ("Nodes at which failures point", failure_fields.nodes(UTC)),
        ("Runs and their caches", cache_fields.fields(UTC)),
        ("Checkpoint intervals", interval_fields.fields({})),
        ("Families of jobs", regression_fields.families((), UTC, str)),
    )
    return [
        *(Part(title, "", [Definition(label, said) for label, _, said in told]) for title, told in figures),
        *(Part(title, "", [Definition(one.title, one.help) for one in known]) for title, known in tables),
    ]
