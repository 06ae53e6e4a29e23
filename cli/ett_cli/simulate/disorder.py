"""Lines that come late or twice: the same events, as a bad network delivers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from ett_cli.simulate.chance import Chance
from ett_cli.simulate.voices import Told
from ett_core.events import Event

LATEST_S = 600.0
NEAR_S = 5.0


def disturbed(told: Iterable[Told], chance: Chance, share: float) -> Iterator[Told]:
    """The same events, of which a share comes late, up to ten minutes, and as many come twice.

    Each is given with the moment at which it arrives. Nothing is lost.
    """
    held: list[tuple[int, int, Event]] = []
    for order, (at_ms, event) in enumerate(told):
        while held and held[0][0] <= at_ms:
            arrives_ms, _, late = heappop(held)
            yield arrives_ms, late
        fate = chance.random()
        if fate < 2.0 * share:
            longest_s = NEAR_S if chance.hit(0.8) else LATEST_S
            heappush(held, (at_ms + chance.between_ms(0.0, longest_s), order, event))
        if fate >= share:
            yield at_ms, event
    while held:
        arrives_ms, _, late = heappop(held)
        yield arrives_ms, late
