"""The collectives and process groups of a start, counted by kind, with the seconds that they took.

From `start` to `stop` (or inside the context) the functions of `torch.distributed` are replaced by
ones that count, in every module that has them by their name; afterwards all is as it was, so the
training loop runs what torch wrote. A call inside a call (`all_gather_object` gathers twice) is part
of the outer one. Any thread may call; seconds of threads add up.

Not seen: collectives that compiled graphs, DTensor and C++ (the gradients of DDP) start by
themselves. A model that calls collectives in what is compiled should be compiled after `stop`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import ModuleType, TracebackType
from typing import Any

from ett_trainer_hooks import Recorder

GROUPS = ("init_process_group", "new_group", "split_group")
"""Functions of which each call makes one process group, whoever is a member of it."""

COLLECTIVES = (
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "_broadcast_coalesced",
    "_verify_params_across_processes",
)
"""Functions in which all ranks of a group take part; the last two are those of DDP's construction."""

_OWNERS = ("torch.distributed", "torch.distributed.distributed_c10d")


class CollectiveCount:
    """Counts from `start` to `stop`; a context manager that does both.

    Args:
        clock: seconds of a clock that never steps.
        modules: where functions are looked for.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.perf_counter,
        modules: Mapping[str, ModuleType] = sys.modules,
    ) -> None:
        self._clock = clock
        self._modules = modules
        self._lock = threading.Lock()
        self._inside = threading.local()
        self._calls: defaultdict[str, int] = defaultdict(int)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._counted: dict[str, tuple[Any, Any]] = {}

    def __enter__(self) -> CollectiveCount:  # noqa: PYI034 - Self is younger than Python 3.10
        """Begin to count."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop counting."""
        self.stop()

    @property
    def calls(self) -> dict[str, int]:
        """Calls so far by name of the function, groups among them."""
        with self._lock:
            return dict(self._calls)

    def start(self) -> None:
        """Begin to count; a second call does nothing."""
        if self._counted:
            return
        for name in (*GROUPS, *COLLECTIVES):
            original = next(filter(None, (self._found(owner, name) for owner in _OWNERS)), None)
            if original is not None:
                self._counted[name] = (original, self._counting(name.lstrip("_"), original))
        self._replace(self._counted)

    def stop(self) -> None:
        """Put everything back, also where a module imported since has taken a counting function."""
        self._replace({name: (counting, original) for name, (original, counting) in self._counted.items()})
        self._counted.clear()

    def values(self) -> dict[str, float]:
        """Totals as the `counters` event tells them, in sum and by kind; seconds end in `_s`.

        `start.counted` is 1, so that of sums over ranks and attempts a mean can be made.

        >>> sorted(CollectiveCount().values())
        ['start.collectives', 'start.collectives_s', 'start.counted', 'start.groups', 'start.groups_s']
        """
        with self._lock:
            calls, seconds = dict(self._calls), dict(self._seconds)
        told = {
            "start.counted": 1.0,
            **_sums("start.groups", GROUPS, calls, seconds),
            **_sums("start.collectives", [name for name in calls if name not in GROUPS], calls, seconds),
        }
        for name in sorted(calls):
            if name not in GROUPS:
                told[f"start.collectives.{name}"] = float(calls[name])
                told[f"start.collectives.{name}_s"] = seconds[name]
        return told

    def tell(self, recorder: Recorder) -> None:
        """Stop counting and tell the totals, as one `counters` event."""
        self.stop()
        recorder.counters(self.values())

    def _found(self, owner: str, name: str) -> Any:  # noqa: ANN401 - a function of torch's
        return vars(self._modules[owner]).get(name) if owner in self._modules else None

    def _replace(self, pairs: Mapping[str, tuple[Any, Any]]) -> None:
        """Where a module has the first of a pair under its name, it gets the second."""
        for module in list(self._modules.values()):
            owned = getattr(module, "__dict__", {})
            for name in pairs.keys() & owned.keys():
                old, new = pairs[name]
                if owned[name] is old:
                    setattr(module, name, new)

    def _counting(self, kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def counting(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as torch's
            if getattr(self._inside, "call", False):
                return original(*arguments, **named)
            self._inside.call = True
            began_s = self._clock()
            try:
                return original(*arguments, **named)
            finally:
                self._inside.call = False
                self._add(kind, self._clock() - began_s)

        return counting

    def _add(self, kind: str, seconds: float) -> None:
        with self._lock:
            self._calls[kind] += 1
            self._seconds[kind] += seconds


def _sums(
    name: str, kinds: Iterable[str], calls: Mapping[str, int], seconds: Mapping[str, float]
) -> dict[str, float]:
    chosen = [kind for kind in kinds if kind in calls]
    return {
        name: float(sum(calls[kind] for kind in chosen)),
        f"{name}_s": float(sum(seconds[kind] for kind in chosen)),
    }
