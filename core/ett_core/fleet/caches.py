"""Compile caches by run: what was asked, what was compiled all the same, and whether it was cold. Pure.

A run is one attempt. Hit rates alone prove nothing: a cache can answer "hit" while the code is compiled
again, so the verdict of a run holds its compile seconds beside those of the cold runs of its family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from ett_core.accounting.account import AttemptAccount, JobAccount
from ett_core.components import RECOMPILE
from ett_core.fleet.attempts import attempt_ids
from ett_core.fleet.rows import Run
from ett_core.process_totals import CacheTotals

WARM, COLD, PARTLY, HOLLOW, SILENT, NOTHING = "warm", "cold", "partly", "hollow", "silent", "nothing"
VERDICTS: Mapping[str, str] = {
    WARM: "nearly everything came from caches, and little was compiled",
    PARTLY: "some came from caches, the rest was compiled",
    COLD: "next to nothing came from caches",
    HOLLOW: "caches answered, yet it compiled about as long as without them",
    SILENT: "it compiled, and no cache told anything",
    NOTHING: "it compiled nothing so far",
}
"""Every verdict with its meaning."""
WARM_FROM, COLD_TO = 0.8, 0.2
"""Hit ratios from which, and up to which, a run is called warm and cold."""
HOLLOW_FROM = 0.5
"""A run that compiles longer than this share of the cold runs of its family was warm in name only."""
LEAST_COMPILE_S = 1.0
"""Compiling for less than this is not worth a word."""
EXPECTED_BY = 3
"""So many runs of the family before a run, all warm, let it be expected to be warm as well."""


class CacheRun(msgspec.Struct, frozen=True, kw_only=True):
    """The compile caches of one run, and what was compiled all the same.

    `compile_s`: wall seconds that the start or the recovery waited for compilation;
    `hidden_compile_s`: compiled on another track meanwhile; `recompile_s`: in the loop.
    `hit_ratio` is over all caches, 0 to 1, None without a request.
    """

    id: str
    job_id: str
    job_name: str
    attempt: int
    start: float
    family: str
    cluster: str
    team: str
    model: str
    accelerator_type: str
    world_size: int
    nodes: Sequence[str]
    config_hash: str
    versions: Mapping[str, str]
    caches: Mapping[str, CacheTotals]
    hit_ratio: float | None
    bytes: int
    saved_s: float
    compile_s: float
    hidden_compile_s: float
    recompile_s: float
    cache_load_s: float

    @property
    def compiled_s(self) -> float:
        """All seconds of compilation before the loop, waited for or hidden."""
        return self.compile_s + self.hidden_compile_s


class Verdict(msgspec.Struct, frozen=True):
    """Whether a run was cold or warm (a key of `VERDICTS`), and whether it should have been warm.

    `because` says why it was expected to be warm, and is empty where it was not; `alike` is the id of
    the run to compare it with: the latest warm one of its family before it, empty without one.
    """

    kind: str
    expected_warm: bool
    because: str
    alike: str

    @property
    def is_surprise(self) -> bool:
        """Whether it was expected to be warm and was not."""
        return self.expected_warm and self.kind in (COLD, HOLLOW)


def hit_ratio(totals: Sequence[CacheTotals]) -> float | None:
    """The share of hits in hits and misses, None without any.

    >>> hit_ratio([CacheTotals(hits=3, misses=1), CacheTotals(hits=0, misses=2)])
    0.5
    """
    hits = sum(total.hits for total in totals)
    asked = hits + sum(total.misses for total in totals)
    return hits / asked if asked else None


def cache_runs(
    account: JobAccount,
    runs: Sequence[Run],
    caches: Mapping[int, Mapping[str, CacheTotals]],
    labels: Mapping[str, str],
) -> list[CacheRun]:
    """The runs of a job that compiled something or asked a cache, in order.

    `runs` are the rows of its attempts, `caches` the totals by number of the attempt and cache; of
    several attempts with one number the first has them.
    """
    counted: set[int] = set()
    found = []
    ids = attempt_ids(account.job_id, account.attempts)
    for name, attempt, run in zip(ids, account.attempts, runs, strict=True):
        own = {} if attempt.attempt in counted else caches.get(attempt.attempt, {})
        counted.add(attempt.attempt)
        found.append(_cache_run(name, attempt, run, own, labels))
    return [run for run in found if run.caches or run.compiled_s or run.recompile_s]


def _cache_run(
    name: str,
    attempt: AttemptAccount,
    run: Run,
    caches: Mapping[str, CacheTotals],
    labels: Mapping[str, str],
) -> CacheRun:
    totals = list(caches.values())
    return CacheRun(
        id=name,
        job_id=run.job_id,
        job_name=labels.get("job_name") or run.job_id,
        attempt=attempt.attempt,
        start=attempt.start,
        family=run.family,
        cluster=run.cluster,
        team=run.owner,
        model=labels.get("model", ""),
        accelerator_type=attempt.accelerator_type,
        world_size=attempt.world_size,
        nodes=sorted(run.nodes),
        config_hash=run.config_hash,
        versions=run.versions,
        caches=caches,
        hit_ratio=hit_ratio(totals),
        bytes=sum(total.bytes for total in totals),
        saved_s=sum(total.saved_s for total in totals),
        compile_s=_before_the_loop(attempt, "compile"),
        hidden_compile_s=attempt.hidden.get("compile", 0.0),
        recompile_s=attempt.components.get(RECOMPILE, 0.0),
        cache_load_s=_before_the_loop(attempt, "cache_load"),
    )


def _before_the_loop(attempt: AttemptAccount, phase: str) -> float:
    return sum(attempt.components.get(f"{kind}.{phase}", 0.0) for kind in ("start", "recover"))


def judged(runs: Sequence[CacheRun]) -> dict[str, Verdict]:
    """The verdict of each run by its id.

    A run is held against all runs of its family; what is expected of it rests on those before it.
    """
    by_family: dict[str, list[CacheRun]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.start, run.id)):
        by_family[run.family].append(run)
    return {
        run_id: verdict
        for members in by_family.values()
        for run_id, verdict in _judged_family(members).items()
    }


def _judged_family(runs: Sequence[CacheRun]) -> dict[str, Verdict]:
    """Verdicts of the runs of a family, which come in order of their start."""
    cold_s = _cold_level_s(runs)
    compiled: dict[tuple[object, ...], CacheRun] = {}
    kinds: list[str] = []
    latest_warm = ""
    verdicts = {}
    for run in runs:
        kind = verdict_of(run, cold_s)
        known = compiled.get(_key(run))
        because = _expectation(run, known, kinds)
        verdicts[run.id] = Verdict(kind, bool(because), because, latest_warm)
        if kind not in (NOTHING, SILENT):
            kinds.append(kind)
            compiled.setdefault(_key(run), run)
        if kind == WARM:
            latest_warm = run.id
    return verdicts


def verdict_of(run: CacheRun, cold_s: float | None) -> str:
    """Whether a run was cold or warm; `cold_s` is how long cold runs of its family compile, where known."""
    if run.hit_ratio is None:
        return SILENT if run.compiled_s >= LEAST_COMPILE_S else NOTHING
    if run.hit_ratio >= WARM_FROM:
        is_hollow = cold_s is not None and run.compiled_s > max(HOLLOW_FROM * cold_s, LEAST_COMPILE_S)
        return HOLLOW if is_hollow else WARM
    return COLD if run.hit_ratio <= COLD_TO else PARTLY


def _cold_level_s(runs: Sequence[CacheRun]) -> float | None:
    cold = [run.compiled_s for run in runs if run.hit_ratio is not None and run.hit_ratio <= COLD_TO]
    return median(cold) if cold else None


def _key(run: CacheRun) -> tuple[object, ...]:
    """What makes compiled code usable again."""
    return (run.config_hash, tuple(sorted(run.versions.items())), run.accelerator_type)


def _expectation(run: CacheRun, known: CacheRun | None, kinds: Sequence[str]) -> str:
    if known is not None and run.config_hash:
        same = "this job" if known.job_id == run.job_id else known.id
        return f"{same} had compiled the same configuration with the same versions before"
    if len(kinds) >= EXPECTED_BY and set(kinds[-EXPECTED_BY:]) == {WARM}:
        return f"the {EXPECTED_BY} runs of its family before it were warm"
    return ""
