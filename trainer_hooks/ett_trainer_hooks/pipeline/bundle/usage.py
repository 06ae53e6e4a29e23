"""What the use of a bundle comes to, told as events: hits, bytes, seconds spent and seconds saved. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from ett_trainer_hooks.pipeline.bundle.entry import Entry
from ett_trainer_hooks.recording.facts import FactRecorder

CACHE = "mega_cache"
MB = 1e6


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """How a start fared with its bundle."""

    outcome: Literal["hit", "miss", "bypass"]
    """`miss`: none fits or may be trusted; `bypass`: the store could not be asked."""
    why: str
    """Where it is no hit."""
    entry: Entry | None = None
    """Of a hit."""
    load_s: float = 0.0
    """Seconds from the question to the code in its place."""

    def sentence(self) -> str:
        """The use in words."""
        if self.entry is None:
            return f"{self.outcome}: {self.why}"
        entry = self.entry
        return (
            f"hit: {entry.graphs} graphs and {len(entry.native)} native files "
            f"({entry.size / MB:.1f} MB) of {entry.name!r}, saved by local rank {entry.local_rank}"
        )


class Gain(msgspec.Struct, frozen=True):
    """What a bundle came to once the first steps were done; seconds."""

    compile_s: float
    """Compilation that remained, the loading of found code included."""
    native_s: float
    """Of the C++ compiler, added over those that ran at once."""
    saved_s: float
    """What the content cost when it was compiled, less what loading it and the rest took; at least 0."""

    def sentence(self) -> str:
        """The gain in words."""
        if self.saved_s == 0:
            return f"compiled for {self.compile_s:.1f} s"
        return f"compiled for {self.compile_s:.1f} s, {self.saved_s:.1f} s less than without the bundle"


def gain_of(use: Use, compile_s: float, native_s: float) -> Gain:
    """What a use came to, given the seconds that this process has compiled so far.

    >>> gain_of(Use(outcome="miss", why="none yet"), 16.0, 20.0).saved_s
    0.0
    """
    saved_s = 0.0 if use.entry is None else use.entry.compile_s - use.load_s - compile_s
    return Gain(compile_s, native_s, max(0.0, saved_s))


def tell_use(recorder: FactRecorder, use: Use) -> None:
    """Say how the start fared, in place of the compiler's own count of this cache."""
    recorder.caches_told_apart.add(CACHE)
    _tell_totals(recorder, use, None)
    values = {"load_s": use.load_s}
    if use.entry is not None:
        values |= {"bytes": float(use.entry.size), "graphs": float(use.entry.graphs)}
    recorder.decision("bundle", use.sentence(), values)


def tell_gain(recorder: FactRecorder, use: Use, gain: Gain) -> None:
    """Say what it came to."""
    _tell_totals(recorder, use, gain.saved_s)
    values = {"compile_s": gain.compile_s, "native_s": gain.native_s, "saved_s": gain.saved_s}
    recorder.decision("bundle used", gain.sentence(), values)


def _tell_totals(recorder: FactRecorder, use: Use, saved_s: float | None) -> None:
    recorder.cache(
        CACHE,
        hits=int(use.outcome == "hit"),
        misses=int(use.outcome == "miss"),
        bypasses=int(use.outcome == "bypass"),
        bytes=0 if use.entry is None else use.entry.size,
        saved_s=saved_s,
    )
