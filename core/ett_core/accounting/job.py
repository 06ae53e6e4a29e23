"""The accounting of one job: events in, in any order; the partition of its time out.

`JobFold` is used by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ett_core.accounting.account import NS, JobAccount, Stretch, in_seconds, nanoseconds
from ett_core.accounting.chain import Chain
from ett_core.accounting.job_lanes import DEFAULTS, FoldState, History, JobLanes
from ett_core.accounting.lane import Lane
from ett_core.accounting.layout import Layout, cuts_of, lay_out
from ett_core.accounting.report import account_of, told_until_ns
from ett_core.accounting.sealed import Sealed
from ett_core.accounting.settings import Settings
from ett_core.amounts import Amounts
from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import AnyEvent


class JobFold(JobLanes):
    """The streaming fold of one job."""

    __slots__ = ("_known_chain",)

    def __init__(
        self,
        job_id: str,
        *,
        settings: Settings = DEFAULTS,
        history: History | None = None,
        archive: Archive = IN_MEMORY,
    ) -> None:
        """Start with no events.

        Args:
            job_id: the job whose events will be added.
            settings: limits of the accounting.
            history: where all events can be read again; None keeps them in memory.
            archive: keeps what is rarely needed again.
        """
        super().__init__(job_id, settings=settings, history=history, archive=archive)
        self._known_chain: tuple[float, Chain | None] | None = None
        """The answer to the latest question, as of one moment, until something comes."""

    def state(self) -> FoldState:
        """The fold as a value."""
        self._known_chain = None
        return super().state()

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Take in events of this job, in any order; repeats change nothing.

        One that the accounting cannot take in is left out and noted in `refusals`, here or when it is
        folded.

        Raises:
            ValueError: an event is of another job.
        """
        self._known_chain = None
        super().add(events)

    def _layout(self, now: float) -> Layout | None:
        self._settle()
        parts = self._parts()
        if not parts:
            return None
        cuts = cuts_of([lane.parts[part] for lane, part in parts], self._job_ends)
        changed = [lane.cut(part, at_ns) for (lane, part), at_ns in zip(parts, cuts, strict=True)]
        if any(changed):
            self._settle()
        attempts = [lane.parts[part] for lane, part in self._parts()]
        return lay_out(attempts, self._job_ends, nanoseconds(now), self._settings)

    def _parts(self) -> list[tuple[Lane, int]]:
        """The attempts in the order of their numbers: lane and place in it."""
        lanes = [self._lanes[number] for number in sorted(self._lanes)]
        return [(lane, part) for lane in lanes for part in range(len(lane.parts))]

    def _chain(self, now: float) -> Chain | None:
        if self._known_chain is None or self._known_chain[0] != now:
            self._known_chain = (now, self._new_chain(now))
        return self._known_chain[1]

    def _new_chain(self, now: float) -> Chain | None:
        chain = self._chain_after_sealed(now)
        if chain is not None:
            return chain
        self._unseal()
        layout = self._layout(now)
        if layout is None:
            self._earlier = None
            return None
        chain = Chain.of(layout, self._earlier, self._archive)
        self._earlier = chain.earlier
        if not self._may_seal():
            return chain
        self._seal(chain)
        return self._chain_after_sealed(now) or chain

    def _chain_after_sealed(self, now: float) -> Chain | None:
        """The chain, where all lanes but the last are put away and it leaves them as they are."""
        self._settle()
        if self._sealed is None or self._earlier is None:
            return None
        (lane,) = self._lanes.values()
        if len(lane.parts) != 1:
            return None
        before = self._earlier.head.before
        layout = lay_out(lane.parts, self._job_ends, nanoseconds(now), self._settings, before)
        return Chain.after(self._earlier, layout, self._job_ends)

    def _may_seal(self) -> bool:
        last = self._lanes[max(self._lanes)]
        others = [lane for lane in self._lanes.values() if lane is not last]
        return bool(others) and len(last.parts) == 1 and all(lane.is_at_rest for lane in others)

    def _seal(self, chain: Chain) -> None:
        """Put the lanes before the last one away."""
        lanes = [self._lanes.pop(number) for number in sorted(self._lanes)[:-1]]
        self._revised_ns = min(self._revised_ns, *(lane.take_revised_ns() for lane in lanes))
        self._sealed = Sealed(lanes, chain.earlier.partitions, self._settings, self._archive)
        chain.earlier.put_away(self._sealed, chain.seam(self._job_ends))
        (last,) = self._lanes.values()
        self._sequences.put_away(but=last.writers())

    def forget_answers(self) -> None:
        """Let go of what was computed for the latest questions, where no more are expected."""
        self._known_chain = None
        for lane in self._lanes.values():
            for part in lane.parts:
                part.kept = None

    def told_until(self, now: float) -> float | None:
        """Up to when the last attempt has told what it did (Unix seconds); what follows is a guess."""
        chain = self._chain(now)
        return None if chain is None else told_until_ns(chain.last.span) / NS

    def account(self, now: float) -> JobAccount | None:
        """Where the job's time went, as of `now` (Unix seconds); None before its first event."""
        chain = self._chain(now)
        return None if chain is None else account_of(self.job_id, now, chain)

    def timeline(self, now: float, begin: float | None = None, end: float | None = None) -> Sequence[Stretch]:
        """The partition as stretches in time order, between two moments (Unix seconds)."""
        chain = self._chain(now)
        if chain is None:
            return ()
        begin_ns = None if begin is None else nanoseconds(begin)
        return list(chain.stretches(begin_ns, None if end is None else nanoseconds(end)))

    def window(self, begin: float, end: float, now: float) -> Mapping[str, float]:
        """Seconds by component between two moments (Unix seconds), as known at `now`.

        Adjoining windows add up to the window that they span.
        """
        chain = self._chain(now)
        return {} if chain is None else Amounts(chain.window(nanoseconds(begin), nanoseconds(end)))

    def windows(self, edges: Sequence[float], now: float) -> Sequence[dict[str, float]]:
        """Seconds by component in each part between moments that follow each other (Unix seconds)."""
        chain = self._chain(now)
        if chain is None:
            return [{}] * (len(edges) - 1)
        return [in_seconds(totals) for totals in chain.windows([nanoseconds(edge) for edge in edges])]
