"""Caches in words: what a run was, what is to be said of many, and of two side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.colours import DOMAIN_COLOURS
from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, IDLENESS, UNKNOWN
from ett_core.fleet.caches import COLD, HOLLOW, NOTHING, PARTLY, SILENT, VERDICTS, WARM
from ett_dashboard.caches.rows import CacheRunRow, CacheRuns, Comparison
from ett_dashboard.words import Sentence, duration, many, plain, ratio

VERDICT_COLOURS: Mapping[str, str] = {
    WARM: GROUP_COLOURS[EFFECTIVE],
    PARTLY: GROUP_COLOURS[IDLENESS],
    COLD: GROUP_COLOURS[FAILURE],
    HOLLOW: DOMAIN_COLOURS["workload"],
    SILENT: GROUP_COLOURS[UNKNOWN],
    NOTHING: GROUP_COLOURS[UNKNOWN],
}
VERDICT_SYMBOLS: Mapping[str, str] = {
    WARM: "circle",
    PARTLY: "diamond",
    COLD: "x",
    HOLLOW: "square",
    SILENT: "circle-open",
    NOTHING: "circle-open",
}
CACHE_TITLES: Mapping[str, str] = {
    "fx_graph": "FX graph",
    "aot_autograd": "AOT autograd",
    "triton_bundle": "Triton bundle",
    "pgo": "PGO",
    "autotune": "autotune",
    "mega_cache": "MegaCache",
}

_COMPARED: Mapping[str, str] = {
    "verdict": "Cold or warm, by hits and by seconds: a hit alone is no proof.",
    "hit rate": "Hits in hits and misses of all caches.",
    "waited for compilation": "Wall time that the start or the recovery waited for compilation.",
    "hidden compilation": "Compiled on another track meanwhile.",
    "recompiled in the loop": "Compiled in the loop.",
    "loading caches": "Wall time that went into loading caches.",
    "bypasses": "What cannot be cached, and asked for nothing.",
    "saved by hits": "Compilation that hits spared, as the caches tell it, over all ranks.",
    "bytes": "Bytes of the artifacts, as the caches tell.",
}


def compared_meaning(what: str) -> str:
    """What a row of two runs side by side means.

    >>> compared_meaning("PGO hit rate"), compared_meaning("torch")
    ('Hits in hits and misses of this cache.', 'As the runs told it of themselves.')
    """
    usual = "Hits in hits and misses of this cache." if what.endswith(" hit rate") else ""
    return _COMPARED.get(what) or usual or "As the runs told it of themselves."


def run_name(run: CacheRunRow) -> str:
    """A run in short: its job and its attempt."""
    return f"{plain(run.job_name or run.job_id, 48)} · attempt {run.attempt}"


def verdict_meaning(verdict: str) -> str:
    """What a verdict means."""
    return VERDICTS.get(verdict, "a verdict of a later version")


def verdict_colour(verdict: str) -> str:
    """The colour of a verdict."""
    return VERDICT_COLOURS.get(verdict, GROUP_COLOURS[UNKNOWN])


def cache_title(cache: str) -> str:
    """The name of a kind of cache for people."""
    return CACHE_TITLES.get(cache, plain(cache, 30))


def fleet_sentence(answer: CacheRuns) -> Sentence:
    """What is to be said of many runs at once."""
    if not answer.total:
        return Sentence("no run compiled anything or asked a cache")
    counts = [f"{answer.verdicts[kind]:,} {kind}" for kind in VERDICTS if answer.verdicts.get(kind)]
    how = f"{many(answer.total, 'run')}: {', '.join(counts)}"
    if not answer.surprises:
        return Sentence(f"{how}; none was cold that should have been warm")
    were = "was" if answer.surprises == 1 else "were"
    return Sentence(
        f"{how}; {answer.surprises:,} {were} expected to be warm and {were} not",
        "Compare one with a warm run of its family: it says what differs.",
    )


def surprise_sentence(run: CacheRunRow) -> str:
    """What was unexpected about a run."""
    how = "answered hits, yet compiled" if run.verdict == HOLLOW else "was cold and compiled"
    return f"{how} {duration(run.compiled_s)}; {plain(run.because, 160)}"


def comparison_sentence(found: Comparison) -> Sentence:
    """How two runs compare, the colder one named, and the likeliest reason."""
    cold, warm = (found.two, found.one) if found.cold == found.two.id else (found.one, found.two)
    if cold.verdict == WARM:
        return Sentence(
            f"both were warm: they compiled {duration(warm.compiled_s)} and {duration(cold.compiled_s)}"
        )
    how = (
        f"the {cold.verdict} one is {run_name(cold)}: it compiled {duration(cold.compiled_s)} "
        f"with {ratio(cold.hit_ratio)} hits; the other compiled {duration(warm.compiled_s)} "
        f"with {ratio(warm.hit_ratio)}"
    )
    return Sentence(how, plain(found.reasons[0], 300) if found.reasons else "")
