"""Where two contexts differ, in words: why something kept cannot be used. Pure."""

from __future__ import annotations

from typing import Any


def difference(then: Any, now: Any, path: str = "") -> str:  # noqa: ANN401 - plain data
    """The first place where two contexts differ (`topology.world_size was 2, is 4`); empty without one."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*now, *(name for name in then if name not in now)]:
            place = f"{path}.{name}" if path else str(name)
            if name not in then or name not in now:
                return f"{place} is {'new' if name in now else 'gone'}"
            if found := difference(then[name], now[name], place):
                return found
        return ""
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return next(filter(None, (difference(*pair, f"{path}[{index}]") for index, pair in pairs)), "")
    return "" if then == now else f"{path} was {then}, is {now}"
