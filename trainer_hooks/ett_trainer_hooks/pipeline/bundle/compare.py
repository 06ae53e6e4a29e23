"""Why one start could not use what another has compiled: two bundles, or one and this environment. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from ett_trainer_hooks.pipeline import profile
from ett_trainer_hooks.pipeline.bundle.entry import Entry
from ett_trainer_hooks.pipeline.bundle.fingerprint import differences

GRAPHS = ("inductor", "aot_autograd")
FITS = (
    "Nothing differs: it fits. Look whether it was there, trusted and whole at that time: ett cache verify."
)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared."""

    what: str
    """What a person calls it."""
    facts: Mapping[str, str]
    settings: Mapping[str, str] | None = None
    """None where they are not known."""
    artifacts: Mapping[str, list[str]] | None = None
    """None where nothing has been compiled yet."""
    native: int = 0


class Comparison(msgspec.Struct, frozen=True):
    """What differs, and what that means."""

    facts: list[str]
    settings: list[str]
    common: dict[str, int]
    """The compiler's entries that both have, by kind."""
    only_one: dict[str, int]
    only_two: dict[str, int]
    reasons: list[str]
    """Sentences, the likeliest cause first; never empty."""


def side_of(entry: Entry, what: str) -> Side:
    """A bundle as a side."""
    return Side(
        what=what,
        facts=entry.facts,
        settings=entry.settings,
        artifacts=entry.artifacts,
        native=len(entry.native),
    )


def compare(one: Side, two: Side) -> Comparison:
    """Why the start that made, or is, `two` could not use `one`."""
    facts = differences(one.facts, two.facts)
    settings = (
        [] if None in (one.settings, two.settings) else _settings(one.settings or {}, two.settings or {})
    )
    mine, theirs = (_keys(side) for side in (one, two))
    common = _counts(mine, lambda kind, key: key in theirs.get(kind, ()))
    only_one = _counts(mine, lambda kind, key: key not in theirs.get(kind, ()))
    only_two = _counts(theirs, lambda kind, key: key not in mine.get(kind, ()))
    found = Comparison(facts, settings, common, only_one, only_two, [])
    return msgspec.structs.replace(found, reasons=list(_reasons(one, two, found)) or [FITS])


def _reasons(one: Side, two: Side, found: Comparison) -> Iterator[str]:
    if found.facts:
        yield f"{two.what} cannot use code of {one.what}: {'; '.join(found.facts)}."
    if found.settings:
        yield f"Settings of the compiler are part of its keys: {'; '.join(found.settings)}."
    if one.artifacts is not None and not one.native and not one.facts.get("gpu"):
        yield f"{one.what} holds no native code: its graphs are found, and their C++ is compiled again."
    if one.artifacts is None or two.artifacts is None:
        return
    asked = sum(len(two.artifacts.get(kind, ())) for kind in GRAPHS)
    other = sum(found.only_two.get(kind, 0) for kind in GRAPHS)
    if other and not found.facts and not found.settings:
        yield (
            f"{other} of {asked} entries have other keys: the code of the model, a shape or type of its "
            "input, or a setting made in the program has changed."
        )


def _settings(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is {two.get(name, 'not set')}, was {one.get(name, 'not set')}"
        for name in sorted({*one, *two}.difference(profile.NAMES))  # which are in no key
        if one.get(name) != two.get(name)
    ]


def _keys(side: Side) -> dict[str, set[str]]:
    return {kind: set(keys) for kind, keys in (side.artifacts or {}).items()}


def _counts(keys: Mapping[str, set[str]], wanted: Callable[[str, str], bool]) -> dict[str, int]:
    counts = {kind: sum(wanted(kind, key) for key in some) for kind, some in sorted(keys.items())}
    return {kind: count for kind, count in counts.items() if count}
