"""One attempt: its fold, what accounts ask of it, and how it is put away when nothing comes any more."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ett_core.accounting.attempt_fold import AttemptFold
from ett_core.accounting.attempt_state import AttemptMark, AttemptRest, AttemptState, Begun
from ett_core.accounting.durables import Durables
from ett_core.accounting.loop import Loop
from ett_core.accounting.phases import MAIN
from ett_core.accounting.ranks import Ranks
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive, Bytes, Parcel

COMPRESSION_LEVEL = 2


class Attempt(AttemptFold):
    """An attempt with its answers; what it rarely needs is put away while it is at rest."""

    __slots__ = ("_begun", "_blocks", "_is_away", "_parcel", "_parcel_of", "kept")
    _REST = ("_held_back", "resumed", "durable", "loop", "ranks")

    def __init__(self, number: int, settings: Settings, archive: Archive = IN_MEMORY) -> None:
        super().__init__(number, settings, archive)
        self.kept: tuple[Any, Any] | None = None
        """What was computed of one version in one place, for whoever asks again."""
        self._parcel: Bytes | None = None
        """What was put away, as of a version."""
        self._blocks: Bytes | None = None
        """The closed blocks of the loop at that time."""
        self._parcel_of = -1
        self._is_away = False
        self._begun: tuple[int, Begun] | None = None

    def begun(self) -> Begun:
        """What is told of the way into the loop; asked between events, and kept until the next one."""
        if self._begun is None or self._begun[0] != self.version:
            entered = self.entered()
            last_step = None if self.loop is None else self.loop.step
            durable = (self.durable.highest_step, self.durable.latest_ns)
            self._begun = (
                self.version,
                Begun(entered.loop_ns, entered.critical, self.declared_step(), last_step, *durable),
            )
        return self._begun[1]

    def highest_durable(self, by_ns: int, reached_step: int) -> int:
        """The highest step durable by a moment that is not above another; 0 without one."""
        begun = self.begun()
        if by_ns >= begun.durable_ns and reached_step >= begun.durable_step:
            return max(begun.durable_step, 0)
        return self.durable.highest(by_ns, reached_step) or 0

    def follow_rank(self) -> int | None:
        """The rank whose main track the loop follows: the leader, else the lowest."""
        return self.leader if self.leader is not None else min(self.ranks, default=None)

    def declared_step(self) -> int | None:
        """The step that this attempt says it continues from, by its lowest rank that says one."""
        if self.resumed is not None:
            return self.resumed[1]
        return self.entered().declared_step

    def open_phase(self) -> tuple[str, int] | None:
        """Innermost phase open on the followed main track in the loop, and since when."""
        follow = self.follow_rank()
        if follow is None:
            return None
        opened = [p for p in self.ranks.look(follow).loop_phases() if p.end_ns is None and p.track == MAIN]
        return (opened[-1].phase, opened[-1].begin_ns) if opened else None

    def pack_ranks(self, marks: Sequence[AttemptMark]) -> None:
        """Pack the ranks of which nothing is expected; `marks` are all that lead back."""
        self.ranks.pack(self.leader, [mark.ranks for mark in marks])

    def state(self) -> AttemptState:
        """The attempt as a value."""
        if self._is_away and self._parcel is not None:
            blocks = b"" if self._blocks is None else self._blocks.read()
            return AttemptState(self._values(), self._parcel.read(), blocks, self.begun())
        blocks = b"" if self.loop is None else self.loop.packed()
        return AttemptState(self._values(), self._state_of_rest(), blocks, None)

    @classmethod
    def of_state(
        cls, number: int, settings: Settings, state: AttemptState, archive: Archive = IN_MEMORY
    ) -> Attempt:
        """The attempt that gave `state`."""
        blocks = Parcel(archive, state.blocks) if state.blocks else None
        if not isinstance(state.rest, AttemptRest):
            return cls.at_rest(number, settings, state, (Parcel(archive, state.rest), blocks), archive)
        attempt = cls(number, settings, archive)
        attempt._set_values(state.values)
        attempt._take_rest(state.rest, blocks)
        return attempt

    @classmethod
    def at_rest(
        cls,
        number: int,
        settings: Settings,
        state: AttemptState,
        parcels: tuple[Bytes, Bytes | None],
        archive: Archive,
    ) -> Attempt:
        """The attempt at rest that gave `state`, bare or not, and has put `parcels` away."""
        attempt = cls(number, settings, archive)
        attempt._set_values(state.values)
        attempt._put_away(*parcels)
        attempt._begun = None if state.begun is None else (attempt.version, state.begun)
        attempt._leave()
        return attempt

    def rest(self) -> None:
        """Put away what is rarely needed; whoever asks for any of it brings it all back."""
        if self._is_away:
            return
        if self._parcel is None or self._parcel_of != self.version:
            self.begun()
            blocks = None if self.loop is None else self.loop.put_together()
            rest = zlib.compress(_encoder.encode(self._state_of_rest()), COMPRESSION_LEVEL)
            self._put_away(Parcel(self._archive, rest), blocks)
        self._leave()

    @property
    def parcels(self) -> tuple[Bytes, Bytes | None]:
        """What was put away: what is rarely needed, and the closed blocks of the loop."""
        assert self._parcel is not None  # noqa: S101 - asked of attempts at rest
        return self._parcel, self._blocks

    def bare_state(self) -> AttemptState:
        """The attempt at rest as a value without what was put away."""
        return AttemptState(self._values(), b"", b"", self.begun())

    def rest_again(self) -> None:
        """Let go of what was brought back, where nothing has changed since it was put away."""
        if not self._is_away and self._parcel_of == self.version:
            self._leave()

    def _put_away(self, rest: Bytes, blocks: Bytes | None) -> None:
        self._parcel, self._blocks, self._parcel_of = rest, blocks, self.version

    def _leave(self) -> None:
        self._is_away = True
        self.kept = None
        for name in self._REST:
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of attributes that are put away
        """Bring back what was put away."""
        if name not in self._REST or self._parcel is None:
            raise AttributeError(name)
        self._is_away = False
        self._take_rest(_decoder.decode(zlib.decompress(self._parcel.read())), self._blocks)
        return getattr(self, name)

    def _state_of_rest(self) -> AttemptRest:
        return AttemptRest(
            list(self._held_back),
            self.resumed,
            list(self.durable),
            None if self.loop is None else self.loop.state(),
            self.ranks.states(),
        )

    def _take_rest(self, rest: AttemptRest, blocks: Bytes | None) -> None:
        self._held_back = list(rest.held_back)
        self.resumed, self.durable = rest.resumed, Durables(rest.durable, self._archive)
        loop = rest.loop
        self.loop = None if loop is None else Loop.of_state(self._settings, loop, blocks, self._archive)
        self.ranks = Ranks(rest.ranks)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AttemptRest)
