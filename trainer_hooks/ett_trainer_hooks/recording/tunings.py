"""What torch's autotuner has just done with a kernel, as `cache` events tell of it. Pure.

A kernel with several configurations is compiled and measured with each of them when it is first run
(`tuned`); a search may go on from the best of them, or begin where there is but one (`searched`, and
`searched_together` for several kernels in one). What was found in a cache is not tuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ett_core.events import ConfigValue, TunedKernel
from ett_trainer_hooks.torch_private import field

CANDIDATES_KEPT = 128
"""A list that is longer is not told."""
NAME_KEPT = 1024
"""Characters of a name."""
_FOUND = {"searched": "found_by_coordesc", "searched_together": "found_by_combo_autotune"}
"""What torch notes at a configuration that such a search came to."""
_BY_NAME: Mapping[str, object] = {"num_warps": None, "num_stages": None, "num_ctas": 1, "maxnreg": None}
"""How a configuration is launched, and what goes without saying."""


def tuned_kernel(
    seam: str, tuner: object, took_s: float, measured: Iterable[object], winner: object
) -> TunedKernel | None:
    """A tuning that has ended; None where nothing was searched for.

    Args:
        seam: by which it was seen, see `torch_private.TUNINGS`.
        tuner: of the kernel.
        took_s: seconds of the call.
        measured: what could be launched before it, one a configuration.
        winner: what it came to, which can be launched.
    """
    best, mark = field(winner, "config"), _FOUND.get(seam)
    if mark is not None and not field(best, mark, default=False):
        return None
    counted_s = 0.0 if mark else float(field(tuner, "autotune_time_taken_ns", 0)) / 1e9
    lists = [_values(field(each, "config")) for each in measured]
    is_told = not mark and field(tuner, "custom_kernel", default=False) and len(lists) <= CANDIDATES_KEPT
    return TunedKernel(
        kernel=str(field(field(tuner, "fn"), "__name__", ""))[:NAME_KEPT],
        tuned_s=counted_s or took_s,
        config=_values(best),
        candidates=tuple(lists) if is_told else None,
        searched=mark is not None,
    )


def _values(config: object) -> dict[str, ConfigValue]:
    values = {str(name): _plain(value) for name, value in (field(config, "kwargs") or {}).items()}
    for name, silent in _BY_NAME.items():
        value = field(config, name, silent)
        if value != silent:
            values[name] = _plain(value)
    return values


def _plain(value: Any) -> ConfigValue:  # noqa: ANN401 - of the program
    return value if isinstance(value, bool | int | float | str | None) else str(value)
