"""The time of a job in a trailing window, each second beside the failure that it is charged to. Pure.

    attempts        0 failed            1 failed         2 runs
    seconds         start train unsaved | gap | recover unsaved | gap | recover train
    charged to                  0         0      0       1        1      1

Recovery is charged as in `losses`: to the failure before it. Training that a fall back took away is
charged to the failure that took it, which may be later than the end of its attempt. Over all pieces
the seconds of each component are those of the window, so the partition stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ett_core.accounting.account import FAILED, AttemptAccount, JobAccount
from ett_core.components import (
    RECOVER_ALLOCATION,
    RECOVER_QUEUE,
    RECOVER_RESTART,
    RECOVER_TEARDOWN,
    STALLED,
    TRAINING,
    UNSAVED_TRAINING,
)
from ett_core.fleet.attempts import failed_places

_AFTER = frozenset({RECOVER_TEARDOWN, RECOVER_QUEUE, RECOVER_ALLOCATION, RECOVER_RESTART})
_TRIFLE_S = 1e-6
"""Differences of sums of seconds below this are rounding."""


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Seconds of one component in one attempt; `failure` is the place of the failure charged, else None."""

    component: str
    seconds: float
    attempt: int | None
    failure: int | None


class Lost(msgspec.Struct, frozen=True, gc=False):
    """What one failure could take.

    `trained_s`: seconds of training in its attempt, lost or not; `in_window`: the share (0 to 1) of
    what it took that lies in the window; `in_loop`: whether it struck in a loop, and not before it.
    """

    trained_s: float
    in_window: float
    in_loop: bool


def pieces(account: JobAccount, window: Mapping[str, float], begin: float) -> list[Piece]:
    """The seconds of a window that begins at `begin` (Unix seconds) and ends with what is known, or before.

    `window` holds seconds by component; attempts are named by their place in the account. What clocks put
    behind the end of the window is none of it.
    """
    left = dict(window)
    whole = [place for place, attempt in enumerate(account.attempts) if attempt.start >= begin]
    charges = charged_failures(account)
    taken = unsaved_by_failure(account)
    found: list[Piece] = []
    for place in whole:
        attempt = account.attempts[place]
        inside = [taken_from(left, part) for part in (attempt.components, attempt.after)]
        found += _of_attempt(place, inside, charges[place], taken)
    rest = {component: seconds for component, seconds in left.items() if seconds > _TRIFLE_S}
    cut = len(account.attempts) - len(whole) - 1
    if cut < 0:
        return found + [Piece(component, seconds, None, None) for component, seconds in rest.items()]
    return found + list(_of_attempt(cut, [rest], charges[cut], taken))


def taken_from(left: dict[str, float], part: Mapping[str, float]) -> dict[str, float]:
    """As much of each component as is left, which it takes away.

    >>> left = {"training": 5.0}
    >>> taken_from(left, {"training": 7.0, "other": 1.0}), left
    ({'training': 5.0}, {'training': 0.0})
    """
    inside = {component: min(seconds, left.get(component, 0.0)) for component, seconds in part.items()}
    inside = {component: seconds for component, seconds in inside.items() if seconds > 0}
    for component, seconds in inside.items():
        left[component] -= seconds
    return inside


class Charge(msgspec.Struct, frozen=True, gc=False):
    """The failures, by place, that an attempt recovers from and that ended it; None without."""

    before: int | None
    own: int | None


def charged_failures(account: JobAccount) -> list[Charge]:
    """For each attempt the failure before it and its own."""
    charges, failures, before = [], 0, None
    for attempt in account.attempts:
        own = failures if attempt.outcome == FAILED else None
        charges.append(Charge(before, own))
        if own is not None:
            failures, before = failures + 1, own
    return charges


def unsaved_by_failure(account: JobAccount) -> list[dict[int, float]]:
    """For each attempt the seconds of its training that each failure took away.

    A failure takes what its own attempt trained last, and reaches further back for the rest.
    """
    left = [attempt.components.get(UNSAVED_TRAINING, 0.0) for attempt in account.attempts]
    taken: list[dict[int, float]] = [{} for _ in left]
    ended = failed_places(account.attempts)
    for number, (place, failure) in enumerate(zip(ended, account.failures, strict=True)):
        needed = failure.unsaved_s
        for back in range(place, -1, -1):
            amount = min(needed, left[back])
            if amount > 0:
                taken[back][number] = amount
                left[back] -= amount
                needed -= amount
            if needed <= _TRIFLE_S:
                break
    return taken


def _of_attempt(
    place: int, parts: Sequence[Mapping[str, float]], charge: Charge, taken: Sequence[Mapping[int, float]]
) -> Iterator[Piece]:
    for part in parts:
        for component, seconds in part.items():
            if component == UNSAVED_TRAINING:
                yield from _unsaved(place, seconds, charge, taken[place])
            else:
                yield Piece(component, seconds, place, _charged(component, charge))


def _charged(component: str, charge: Charge) -> int | None:
    if component == STALLED or component in _AFTER:
        return charge.own if charge.own is not None else charge.before if component in _AFTER else None
    return charge.before if component.startswith("recover.") else None


def _unsaved(place: int, seconds: float, charge: Charge, taken: Mapping[int, float]) -> Iterator[Piece]:
    """Unsaved training of an attempt (or of a part of it), shared by the failures that took it."""
    total = sum(taken.values())
    if total <= 0:
        yield Piece(UNSAVED_TRAINING, seconds, place, charge.own)
        return
    for number, amount in taken.items():
        yield Piece(UNSAVED_TRAINING, seconds * amount / total, place, number)


def lost_by_failure(account: JobAccount, found: Sequence[Piece], begin: float) -> list[Lost]:
    """For each failure what its attempt had trained, and which share of its loss is in the window.

    `found` are the pieces of the window, which begins at `begin` (Unix seconds).
    """
    here = [0.0] * len(account.failures)
    for piece in found:
        if piece.component == UNSAVED_TRAINING and piece.failure is not None:
            here[piece.failure] += piece.seconds
    ended = [attempt for attempt in account.attempts if attempt.outcome == FAILED]
    return [
        Lost(
            _trained_s(attempt),
            min(seconds / failure.unsaved_s, 1.0) if failure.unsaved_s else float(failure.time >= begin),
            attempt.loop_start is not None,
        )
        for attempt, failure, seconds in zip(ended, account.failures, here, strict=True)
    ]


def _trained_s(attempt: AttemptAccount) -> float:
    return attempt.components.get(TRAINING, 0.0) + attempt.components.get(UNSAVED_TRAINING, 0.0)
