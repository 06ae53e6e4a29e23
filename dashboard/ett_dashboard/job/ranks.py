"""Who among the ranks is slow, who was last to start, and who died first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ett_core.accounting.account import AttemptAccount
from ett_dashboard.failures.words import place
from ett_dashboard.job.rows import RankRow, Ranks, StragglerRow
from ett_dashboard.rows import FailureRow, JobDetail
from ett_dashboard.words import duration, many, ratio

MOST_TOLD = 3
"""Of slow ranks and of those that died first so many are told in words."""
CAUSES = {
    "step": "its own steps take longer",
    "data_wait": "it waits for its data",
    "stopped": "its process was stopped",
}


class RankLine(msgspec.Struct, frozen=True):
    """One rank with what is to be said of it; `first_batch_s` is seconds from the start of the attempt."""

    row: RankRow
    first_batch_s: float | None
    age_s: float | None
    parts: tuple[str, ...]


def rank_lines(job: JobDetail, ranks: Ranks) -> list[RankLine]:
    """The ranks of the latest attempt; those of which something is to be said come first, then the late."""
    attempt = next((one for one in job.attempt_list if one.attempt == ranks.attempt), None)
    deaths = Counter(failure.first_rank for failure in job.failure_list)
    lines = [_line(row, attempt, deaths[row.rank], ranks.as_of) for row in ranks.ranks]
    return sorted(
        lines,
        key=lambda line: (not line.row.is_straggler, -len(line.parts), -(line.first_batch_s or 0.0)),
    )


def rank_sentences(failures: Sequence[FailureRow], ranks: Ranks) -> list[str]:
    """Slow ranks and those that died first, in words, the worst first."""
    return [*_slow(ranks), *_died(failures)]


def _line(row: RankRow, attempt: AttemptAccount | None, deaths: int, now: float) -> RankLine:
    held_up = attempt is not None and attempt.critical_rank == row.rank and len(attempt.first_batch_at) > 1
    told = (
        (row.is_straggler, "slow now"),
        (held_up, "last to start"),
        (deaths > 0, f"died first {'once' if deaths == 1 else f'{deaths} times'}"),
        (attempt is not None and attempt.leader == row.rank, "leads the loop"),
    )
    begun = None if attempt is None or row.first_batch_at is None else row.first_batch_at - attempt.start
    age_s = None if row.last_event_at is None else max(now - row.last_event_at, 0.0)
    return RankLine(row, begun, age_s, tuple(words for holds, words in told if holds))


def _slow(ranks: Ranks) -> list[str]:
    worst = sorted(ranks.stragglers, key=lambda s: (not s.ongoing, -(s.until - s.since) * s.ratio))
    told = [_straggler(one) for one in worst[:MOST_TOLD]]
    if not told and ranks.step_spread is not None:
        apart = ratio(ranks.step_spread)
        return [f"No rank was slower than the others; their steps lie {apart} apart."]
    more = len(worst) - len(told)
    return [*told, f"{many(more, 'other stretch', 'other stretches')} of slow ranks."] if more else told


def _straggler(slow: StragglerRow) -> str:
    where = _upper(place(slow.rank, slow.node))
    when = "is slow now, for" if slow.ongoing else f"was slow in attempt {slow.attempt}, for"
    why = CAUSES.get(slow.cause, slow.cause)
    return (
        f"{where} {when} {duration(slow.until - slow.since)}: {slow.ratio:.1f} times as long a step, {why}."
    )


def _died(failures: Sequence[FailureRow]) -> list[str]:
    """The ranks that failures began with, by how often; the node of the latest is named."""
    found = Counter(failure.first_rank for failure in failures if failure.first_rank is not None)
    latest = {failure.first_rank: failure for failure in failures}
    told = []
    for rank, times in found.most_common(MOST_TOLD):
        failure = latest[rank]
        often = "once" if times == 1 else f"{times} times"
        where = _upper(place(rank, failure.first_node))
        told.append(f"{where} died first {often}, last in attempt {failure.attempt}.")
    return told


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
