"""What the table of runs says of each: one description for its columns, its order and its CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from operator import attrgetter

from ett_dashboard.addresses import to_job
from ett_dashboard.caches.frames import cache_names
from ett_dashboard.caches.rows import CacheRunRow
from ett_dashboard.caches.words import run_name, size, verdict_colour, verdict_meaning
from ett_dashboard.failures.words import when
from ett_dashboard.listing import Field
from ett_dashboard.table import Cell, Column
from ett_dashboard.words import duration, percent

COMPARE = Column(title="Compare", help="Puts the run into the comparison, as the first or the second one.")


def fields(zone: tzinfo) -> list[Field[CacheRunRow]]:
    """The columns of the table of runs."""
    return [
        Field(
            name="run",
            title="Run",
            help="Name of the job and number of the attempt: a run is one attempt.",
            value=run_name,
            href=lambda run: to_job(run.job_id),
            hint=lambda run: run.id,
            end=False,
        ),
        Field(
            name="start",
            title="Started",
            help="When the attempt began.",
            value=lambda run: run.start,
            show=lambda value: when(float(value or 0.0), zone),
        ),
        Field(
            name="family",
            title="Family",
            help="Runs are held against those of their model and configuration family.",
            value=lambda run: run.family,
            end=False,
        ),
        Field(
            name="verdict",
            title="Verdict",
            help="Cold or warm, by hits and by seconds: a hit alone is no proof.",
            value=lambda run: run.verdict,
            hue=lambda run: verdict_colour(run.verdict),
            hint=lambda run: verdict_meaning(run.verdict),
            end=False,
        ),
        Field(
            name="hit_percent",
            title="Hit rate",
            help="Hits in hits and misses of all caches.",
            value=lambda run: None if run.hit_ratio is None else 100 * run.hit_ratio,
            show=lambda value: percent(None if value is None else float(value)),
            share=lambda run: run.hit_ratio,
        ),
        _seconds("compile_s", "Waited", "Wall time that the start or the recovery waited for compilation."),
        _seconds("hidden_compile_s", "Hidden", "Compiled on another track meanwhile."),
        _seconds("recompile_s", "Recompiled", "Compiled in the loop."),
        _seconds("cache_load_s", "Loaded", "Wall time that went into loading caches."),
        _seconds("saved_s", "Saved", "Compilation that hits spared, as the caches tell it, over all ranks."),
        Field(
            name="bytes",
            title="Size",
            help="Bytes of the artifacts, as the caches tell.",
            value=lambda run: run.bytes,
            show=lambda value: size(float(value or 0.0)),
        ),
    ]


def taken_away(runs: Sequence[CacheRunRow], zone: tzinfo) -> list[Field[CacheRunRow]]:
    """The columns of the CSV: those of the table, what the run is, and the requests of each cache."""
    names = (
        "id",
        "job_id",
        "attempt",
        "cluster",
        "team",
        "model",
        "accelerator_type",
        "world_size",
        "config_hash",
    )
    facts = [Field[CacheRunRow](name=name, title="", help="", value=attrgetter(name)) for name in names]
    counts = [
        Field[CacheRunRow](name=f"{cache}_{what}", title="", help="", value=_count(cache, what))
        for cache in cache_names(runs)
        for what in ("hits", "misses", "bypasses")
    ]
    return [*facts, *fields(zone), *counts]


def compare_cell(run: CacheRunRow, one: str, pick: Callable[[str, str], str]) -> Cell:
    """The way to compare a run; `pick(side, id)` is the address with the run on a side."""
    if not one:
        return Cell("as first", href=pick("one", run.id))
    return Cell("first") if run.id == one else Cell("with the first", href=pick("two", run.id))


def _seconds(name: str, title: str, meaning: str) -> Field[CacheRunRow]:
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=attrgetter(name),
        show=lambda value: duration(None if value is None else float(value)),
    )


def _count(cache: str, what: str) -> Callable[[CacheRunRow], float | None]:
    return lambda run: getattr(run.caches.get(cache), what, None)
