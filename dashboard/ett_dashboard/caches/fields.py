"""What the table of runs says of each: one description for its columns, its order and its CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from operator import itemgetter

from ett_dashboard.addresses import to_job
from ett_dashboard.caches.frames import cache_names
from ett_dashboard.caches.rows import CacheRunRow
from ett_dashboard.caches.words import run_name, verdict_colour, verdict_meaning
from ett_dashboard.columns import Kind, exact, exactly, moments, percentage, seconds, text
from ett_dashboard.listing import Field
from ett_dashboard.table import Cell, Column
from ett_dashboard.words import size

COMPARE = Column(title="Compare", help="Puts the run into the comparison, as the first or the second one.")
BYTES = Kind(lambda value: size(float(value or 0.0)))


def fields(zone: tzinfo, chosen: Mapping[str, str] | None = None) -> list[Field[CacheRunRow]]:
    """The columns of the table of runs; links keep what was `chosen`."""
    return [
        text(
            "run",
            "Run",
            "Name of the job and number of the attempt: a run is one attempt.",
            run_name,
            href=lambda run: to_job(run.job_id, chosen),
            hint=lambda run: run.id,
        ),
        moments(zone)("start", "Started", "When the attempt began."),
        text("family", "Family", "Runs are held against those of their model and configuration family."),
        text(
            "verdict",
            "Verdict",
            "Cold or warm, by hits and by seconds: a hit alone is no proof.",
            hue=lambda run: verdict_colour(run.verdict),
            hint=lambda run: verdict_meaning(run.verdict),
        ),
        percentage(
            "hit_percent",
            "Hit rate",
            "Hits in hits and misses of all caches.",
            lambda run: None if run.hit_ratio is None else 100 * run.hit_ratio,
            share=lambda run: run.hit_ratio,
        ),
        seconds("compile_s", "Waited", "Wall time that the start or the recovery waited for compilation."),
        seconds("hidden_compile_s", "Hidden", "Compiled on another track meanwhile."),
        seconds("recompile_s", "Recompiled", "Compiled in the loop."),
        seconds("cache_load_s", "Loaded", "Wall time that went into loading caches."),
        seconds("saved_s", "Saved", "Compilation that hits spared, as the caches tell it, over all ranks."),
        BYTES("bytes", "Size", "Bytes of the artifacts, as the caches tell."),
    ]


def taken_away(runs: Sequence[CacheRunRow], zone: tzinfo) -> list[Field[CacheRunRow]]:
    """The columns of the CSV: those of the table, what the run is, and the requests of each cache."""
    who = exact("id", "job_id", "attempt", "cluster", "team", "model")
    what = exact("accelerator_type", "world_size", "config_hash")
    counts = [
        exactly(f"{cache}_{kind}", _count(cache, kind))
        for cache in cache_names(runs)
        for kind in ("hits", "misses", "bypasses")
    ]
    return [*who, *what, *fields(zone), *counts]


def compared() -> list[Field[tuple[str, str, str]]]:
    """The columns of the file of two runs."""
    return [exactly(name, itemgetter(place)) for place, name in enumerate(("what", "one", "two"))]


def compare_cell(run: CacheRunRow, one: str, pick: Callable[[str, str], str]) -> Cell:
    """The way to compare a run; `pick(side, id)` is the address with the run on a side."""
    if not one:
        return Cell("as first", href=pick("one", run.id))
    return Cell("first") if run.id == one else Cell("with the first", href=pick("two", run.id))


def _count(cache: str, what: str) -> Callable[[CacheRunRow], float | None]:
    return lambda run: getattr(run.caches.get(cache), what, None)
