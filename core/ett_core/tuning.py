"""Autotuning of kernels: what it cost, which configurations won, and which list would do. Pure.

A tuning is one kernel, as it was compiled once, measured with each configuration of its list; the
seconds are torch's own, of compiling and measuring them all. The same kernel is tuned again for each
use that is compiled as another piece of code. A configuration that never won costs seconds and
brings nothing, as far as was seen: other sizes or another GPU may want it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ett_core.events import Cache, TunedKernel

CACHE = "autotune"
"""The cache that `cache` events of tuned kernels are of."""

Config = tuple[tuple[str, Any], ...]
"""A configuration: names and values in order of names, `num_warps` and `num_stages` among them."""

LAUNCH = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""What `triton.Config` takes by name; all else are constants of the kernel."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel tuned once.

    Args:
        kernel: the function; empty where it is not known.
        config: what won; None where nobody told.
        tuned_s: seconds of compiling and measuring all.
        candidates: the list, where it is the program's own; None where the compiler makes it.
        origin: file and line of the kernel in the program; empty where not known.
        searched: whether the winner was found by a search from the best of the list on.
    """

    kernel: str
    config: Config | None
    tuned_s: float
    candidates: tuple[Config, ...] | None = None
    origin: str = ""
    searched: bool = False


class KernelAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel, over all its tunings.

    Args:
        kernel: the function; empty where it is not known.
        origin: file and line of the kernel in the program; empty where not known.
        tunings: how often it was tuned.
        tuned_s: seconds of all of them.
        winners: what won, with how often, most frequent first.
        candidates: length of the program's own list; None where the compiler makes it.
        reduced: the winners, where they are fewer than the list and all of them on it; else empty.
    """

    kernel: str
    origin: str
    tunings: int
    tuned_s: float
    winners: tuple[tuple[Config, int], ...]
    candidates: int | None
    reduced: tuple[Config, ...]

    @property
    def expected_s(self) -> float:
        """Seconds with the reduced list, were each configuration as dear as the others."""
        if not self.reduced or not self.candidates:
            return self.tuned_s
        if len(self.reduced) == 1:
            return 0.0
        return self.tuned_s * len(self.reduced) / self.candidates


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How often processes asked for what had won before: a kernel that was not found was tuned.

    `attempt` and `processes` are None where all of a job is told as one.
    """

    attempt: int | None = None
    processes: int | None = None
    found: int
    tuned: int


def asked_by_attempt(events: Iterable[Cache]) -> list[Asked]:
    """What the journals of one job tell of it, by attempt: the latest totals of each process."""
    latest: dict[tuple[int, str], Cache] = {}
    for event in sorted((each for each in events if each.cache == CACHE), key=lambda each: each.seq):
        latest[event.attempt, event.writer] = event
    attempts: defaultdict[int, list[Cache]] = defaultdict(list)
    for (attempt, _), event in latest.items():
        attempts[attempt].append(event)
    return [
        Asked(
            attempt=attempt,
            processes=len(totals),
            found=sum(total.hits for total in totals),
            tuned=sum(total.misses for total in totals),
        )
        for attempt, totals in sorted(attempts.items())
    ]


def tunings_of(events: Iterable[Cache]) -> list[Tuning]:
    """The tunings that journals tell of, process by process, whatever was read twice.

    A search is part of the tuning before it.
    """
    told = {(event.writer, event.seq): event for event in events if event.tuned is not None}
    processes: defaultdict[tuple[int, str], list[Tuning]] = defaultdict(list)
    for event in sorted(told.values(), key=lambda each: each.seq):
        assert event.tuned is not None  # noqa: S101 - for the type checker
        add(processes[event.attempt, event.writer], _as_tuning(event.tuned))
    return [tuning for _, tunings in sorted(processes.items()) for tuning in tunings]


def add(tunings: list[Tuning], told: Tuning) -> None:
    """Add a tuning to those of a process, in their order; a search to the latest one of its kernel.

    A kernel without a list is searched for alone: a tuning of its own.
    """
    if told.searched:
        place = next((n for n in reversed(range(len(tunings))) if tunings[n].kernel == told.kernel), None)
        if place is not None:
            known = tunings[place]
            tunings[place] = replace(
                known, tuned_s=known.tuned_s + told.tuned_s, config=told.config, searched=True
            )
            return
    tunings.append(told)


def config_of(values: Mapping[str, Any]) -> Config:
    """A configuration from its names and values.

    >>> config_of({"num_warps": 4, "BLOCK": 128})
    (('BLOCK', 128), ('num_warps', 4))
    """
    return tuple(sorted(values.items()))


def advise(tunings: Iterable[Tuning]) -> list[KernelAdvice]:
    """What each kernel cost and needs, dearest first."""
    kernels: defaultdict[tuple[str, tuple[Config, ...] | None], list[Tuning]] = defaultdict(list)
    for tuning in tunings:
        kernels[(tuning.kernel, tuning.candidates)].append(tuning)
    told = [_advise_kernel(of_one) for of_one in kernels.values()]
    return sorted(told, key=lambda kernel: (-kernel.tuned_s, kernel.kernel))


def as_code(config: Config) -> str:
    """A configuration as a program writes it.

    >>> as_code((("BLOCK", 128), ("num_stages", 2), ("num_warps", 4)))
    "triton.Config({'BLOCK': 128}, num_stages=2, num_warps=4)"
    """
    constants = {name: value for name, value in config if name not in LAUNCH}
    named = "".join(f", {name}={value!r}" for name, value in config if name in LAUNCH)
    return f"triton.Config({constants!r}{named})"


def _as_tuning(told: TunedKernel) -> Tuning:
    return Tuning(
        kernel=told.kernel,
        config=config_of(told.config) if told.config else None,
        tuned_s=told.tuned_s,
        candidates=None if told.candidates is None else tuple(map(config_of, told.candidates)),
        searched=told.searched,
    )


def _advise_kernel(tunings: Sequence[Tuning]) -> KernelAdvice:
    winners = Counter(tuning.config for tuning in tunings if tuning.config is not None).most_common()
    candidates = tunings[0].candidates
    chosen = tuple(config for config, _ in winners)
    prunable = candidates is not None and len(chosen) < len(candidates) and {*chosen} <= {*candidates}
    return KernelAdvice(
        kernel=tunings[0].kernel,
        origin=next((tuning.origin for tuning in tunings if tuning.origin), ""),
        tunings=len(tunings),
        tuned_s=sum(tuning.tuned_s for tuning in tunings),
        winners=tuple(winners),
        candidates=None if candidates is None else len(candidates),
        reduced=chosen if prunable and not any(tuning.searched for tuning in tunings) else (),
    )
