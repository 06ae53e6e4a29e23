"""Two runs side by side: what differs, and which of it is likely to have left the caches cold. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ett_core.fleet.caches import HOLLOW, WARM, CacheRun

NODES_SHOWN = 4
MEGA_CACHE = "mega_cache"


class Difference(msgspec.Struct, frozen=True):
    """One thing that two runs say of themselves; `is_key` where compiled code depends on it."""

    what: str
    one: str
    two: str
    is_key: bool

    @property
    def differs(self) -> bool:
        """Whether the two say different things."""
        return self.one != self.two


def side_by_side(one: CacheRun, two: CacheRun) -> list[Difference]:
    """What both runs ran on: things that compiled code depends on first, those that differ before others."""
    rows = [
        Difference("configuration", one.config_hash, two.config_hash, is_key=True),
        Difference("accelerator", one.accelerator_type, two.accelerator_type, is_key=True),
        *(
            Difference(name, one.versions.get(name, ""), two.versions.get(name, ""), is_key=True)
            for name in sorted({*one.versions, *two.versions})
        ),
        Difference("ranks", str(one.world_size), str(two.world_size), is_key=False),
        Difference("cluster", one.cluster, two.cluster, is_key=False),
        Difference("nodes", _names(one.nodes), _names(two.nodes), is_key=False),
    ]
    return sorted(rows, key=lambda row: (not row.differs, not row.is_key))


def colder(one: CacheRun, two: CacheRun) -> tuple[CacheRun, CacheRun]:
    """The two with the colder one last: the one that compiled longer; of equals the one with fewer hits."""

    def cold(run: CacheRun) -> tuple[float, float]:
        return (run.compiled_s, -(run.hit_ratio or 0.0))

    return (two, one) if cold(one) > cold(two) else (one, two)


def likely_reasons(warm: CacheRun, cold: CacheRun, verdict: str) -> list[str]:
    """Why `cold` compiled what `warm` did not, the likeliest first; `verdict` is that of `cold`.

    Never empty: where nothing that was told differs, it says so and where to look.
    """
    if verdict == WARM:
        return ["It was warm: there is nothing to explain."]
    changed = [row for row in side_by_side(warm, cold) if row.is_key and row.differs]
    reasons = [
        *([HOLLOW_WORDS] if verdict == HOLLOW else []),
        *(
            f"{_titled(row.what)} changed{_from_to(row)}: what was compiled before does not fit."
            for row in changed
        ),
        *_of_bundles(warm, cold),
        *_of_bypasses(warm, cold),
        *([] if changed else _of_places(warm, cold)),
    ]
    return reasons or [NO_REASON]


HOLLOW_WORDS = (
    "Caches answered, but code was compiled again: look whether the bundle holds the compiled native code "
    "(.so files), and whether processor, compiler or driver are others."
)
NO_REASON = (
    "Nothing that both told differs. Look whether the cache directory or the bundle was still there: "
    "retention, a new path, or no right to read it."
)


def _of_bundles(warm: CacheRun, cold: CacheRun) -> Iterator[str]:
    if not _hits(warm, MEGA_CACHE):
        return
    if MEGA_CACHE not in cold.caches:
        yield "The warm run loaded a bundle, this one did not ask for one: look whether it knew the address."
    elif not _hits(cold, MEGA_CACHE):
        yield "A bundle was asked for, and missing or refused: look at its address, rights and fingerprint."


def _of_bypasses(warm: CacheRun, cold: CacheRun) -> Iterator[str]:
    now, before = _bypasses(cold), _bypasses(warm)
    if now > before:
        yield f"Caches were bypassed {now:,} times (before: {before:,}): something cannot be cached any more."


def _of_places(warm: CacheRun, cold: CacheRun) -> Iterator[str]:
    if warm.world_size != cold.world_size:
        yield f"It has {cold.world_size} ranks instead of {warm.world_size}: its shards have other shapes."
    if warm.cluster != cold.cluster:
        yield f"It ran in another cluster ({cold.cluster or 'none named'}), whose caches may be others."
    elif warm.nodes and cold.nodes and not set(cold.nodes) & set(warm.nodes) and not _hits(cold, MEGA_CACHE):
        yield "It ran on other nodes and loaded no bundle: caches on the disks of the old nodes stayed there."


def _titled(word: str) -> str:
    return word[:1].upper() + word[1:]


def _from_to(row: Difference) -> str:
    return f" from {row.one or 'nothing told'} to {row.two or 'nothing told'}"


def _hits(run: CacheRun, cache: str) -> int:
    return run.caches[cache].hits if cache in run.caches else 0


def _bypasses(run: CacheRun) -> int:
    return sum(total.bypasses for total in run.caches.values())


def _names(nodes: Sequence[str]) -> str:
    shown = ", ".join(nodes[:NODES_SHOWN])
    more = len(nodes) - NODES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def rates(one: CacheRun, two: CacheRun) -> Mapping[str, tuple[float | None, float | None]]:
    """Hit ratios of both runs by cache, in order of name."""

    def ratio(run: CacheRun, name: str) -> float | None:
        total = run.caches.get(name)
        return total.hits / (total.hits + total.misses) if total and total.hits + total.misses else None

    names = sorted({*one.caches, *two.caches})
    return {name: (ratio(one, name), ratio(two, name)) for name in names}
