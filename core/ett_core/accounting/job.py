"""The accounting of one job: events in, in any order; the partition of its time out.

`JobFold` is used by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ett_core.accounting.account import NS, JobAccount, Stretch, in_seconds, nanoseconds
from ett_core.accounting.chain import Chain
from ett_core.accounting.job_lanes import FoldState, History, JobLanes
from ett_core.accounting.layout import Layout, cuts_of, lay_out
from ett_core.accounting.report import account_of, told_until_ns
from ett_core.accounting.settings import Settings
from ett_core.amounts import Amounts
from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import AnyEvent
from ett_core.refusals import Refusals

if TYPE_CHECKING:
    from typing import Self

DEFAULTS = Settings()


class JobFold:
    """The streaming fold of one job."""

    __slots__ = ("_archive", "_known_chain", "_lanes", "_settings", "job_id")

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
        self.job_id = job_id
        self._settings = settings
        self._archive = archive
        self._lanes = JobLanes(job_id, settings, history, archive)
        self._known_chain: tuple[float, Chain | None] | None = None
        """The answer to the latest question, as of one moment, until something comes."""

    @classmethod
    def of_state(
        cls,
        state: FoldState,
        *,
        settings: Settings,
        history: History,
        archive: Archive = IN_MEMORY,
        is_cut: bool = False,
    ) -> Self:
        """The fold that gave `state`; `history` holds every event that it was given, or none where `is_cut`.

        Raises:
            ValueError: it was made with other settings.
        """
        fold = cls(state.job_id, settings=settings, history=history, archive=archive)
        fold._lanes.load(state, is_cut=is_cut)
        return fold

    def state(self) -> FoldState:
        """The fold as a value."""
        self._known_chain = None
        return self._lanes.state()

    @property
    def refusals(self) -> Refusals:
        """Events that could not be folded."""
        return self._lanes.refusals

    @property
    def is_cut(self) -> bool:
        """Whether the first events are deleted: what they told stays as it is."""
        return self._lanes.is_cut

    @property
    def is_stale(self) -> bool:
        """Whether events came so late that the next answer has to read the history."""
        return self._lanes.is_stale

    def add(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        """Take in events of this job, in any order; repeats change nothing.

        Returns those that came under a key that was known, with the same content or another. One that the
        accounting cannot take in is left out and noted in `refusals`, here or when it is folded.

        Raises:
            ValueError: an event is of another job.
        """
        self._known_chain = None
        return self._lanes.add(events)

    def take_revised(self) -> float:
        """From when on reports and phases were told anew since the last call (Unix seconds; infinite: never).

        What an account says of attempts and their failures changes besides: neither is it told here, nor
        what time alone makes of the end.
        """
        return self._lanes.take_revised()

    def _layout(self, now: float) -> Layout | None:
        lanes = self._lanes
        lanes.settle()
        parts = lanes.parts()
        if not parts:
            return None
        cuts = cuts_of([lane.parts[part] for lane, part in parts], lanes.job_ends)
        changed = [lane.cut(part, at_ns) for (lane, part), at_ns in zip(parts, cuts, strict=True)]
        if any(changed):
            lanes.settle()
        attempts = [lane.parts[part] for lane, part in lanes.parts()]
        return lay_out(attempts, lanes.job_ends, nanoseconds(now), self._settings)

    def _chain(self, now: float) -> Chain | None:
        if self._known_chain is None or self._known_chain[0] != now:
            self._known_chain = (now, self._new_chain(now))
        return self._known_chain[1]

    def _new_chain(self, now: float) -> Chain | None:
        chain = self._chain_after_sealed(now)
        if chain is not None:
            return chain
        lanes = self._lanes
        lanes.unseal()
        layout = self._layout(now)
        if layout is None:
            lanes.earlier = None
            return None
        chain = Chain.of(layout, lanes.earlier, self._archive)
        lanes.earlier = chain.earlier
        if not lanes.may_seal():
            return chain
        sealed = lanes.seal(chain.earlier.partitions)
        chain.earlier.put_away(sealed, chain.seam(lanes.job_ends))
        return self._chain_after_sealed(now) or chain

    def _chain_after_sealed(self, now: float) -> Chain | None:
        """The chain, where all lanes but the last are put away and it leaves them as they are."""
        lanes = self._lanes
        lanes.settle()
        if lanes.sealed is None or lanes.earlier is None:
            return None
        (lane,) = lanes.by_number.values()
        if len(lane.parts) != 1:
            return None
        before = lanes.earlier.head.before
        layout = lay_out(lane.parts, lanes.job_ends, nanoseconds(now), self._settings, before)
        return Chain.after(lanes.earlier, layout, lanes.job_ends)

    def forget_answers(self) -> None:
        """Let go of what was computed for the latest questions, where no more are expected."""
        self._known_chain = None
        for lane in self._lanes.by_number.values():
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
