"""Seconds by component, and by rank, in small: accounts of jobs hold several such mappings.

A job has few of the components, and a dictionary of them takes four times as much.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from functools import lru_cache
from struct import Struct

from ett_core.components import COMPONENTS

NS = 1_000_000_000
_MASK = Struct("<Q")
_ONE = Struct("<d")
_MOMENT = Struct("<qd")
_BITS = {component: 1 << place for place, component in enumerate(COMPONENTS)}
NAMES_SHARED = 4096


class Amounts(Mapping[str, float]):
    """Seconds by component in display order, without those that are zero; equal to a mapping of the same.

    >>> amounts = Amounts({"stalled": 500_000_000, "training": 2_000_000_000, "data_wait": 0})
    >>> amounts, amounts["stalled"], amounts.get("data_wait"), amounts == {"training": 2.0, "stalled": 0.5}
    ({'training': 2.0, 'stalled': 0.5}, 0.5, None, True)
    """

    __slots__ = ("_packed",)

    def __init__(self, amounts_ns: Mapping[str, int]) -> None:
        """Hold nanoseconds by component as seconds."""
        told = {_BITS[name]: amount for name, amount in amounts_ns.items() if amount}
        bits = sorted(told)
        self._packed = _layout(len(bits)).pack(sum(bits), *(told[bit] / NS for bit in bits))

    def _names(self) -> tuple[str, ...]:
        return names_of(_MASK.unpack_from(self._packed)[0])

    def _as_dict(self) -> dict[str, float]:
        mask, *amounts = _layout(len(self)).unpack(self._packed)
        return dict(zip(names_of(mask), amounts, strict=True))

    def __getitem__(self, name: str) -> float:
        """The seconds of a component."""
        names = self._names()
        if name not in names:
            raise KeyError(name)
        amount: float = _ONE.unpack_from(self._packed, _MASK.size + _ONE.size * names.index(name))[0]
        return amount

    def __contains__(self, name: object) -> bool:
        """Whether a component has any."""
        return name in self._names()

    def __iter__(self) -> Iterator[str]:
        """The components in display order."""
        return iter(self._names())

    def __len__(self) -> int:
        """How many components have any."""
        return len(self._packed) // _ONE.size - 1

    def keys(self) -> KeysView[str]:
        """The components in display order."""
        return self._as_dict().keys()

    def items(self) -> ItemsView[str, float]:
        """Components with their seconds, in display order."""
        return self._as_dict().items()

    def values(self) -> ValuesView[float]:
        """The seconds, in display order."""
        return self._as_dict().values()

    def __eq__(self, other: object) -> bool:
        """Whether another mapping holds the same."""
        if isinstance(other, Amounts):
            return self._packed == other._packed
        return self._as_dict() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a dictionary has none

    def __repr__(self) -> str:
        """As a dictionary of them."""
        return repr(self._as_dict())


@lru_cache(len(COMPONENTS) + 1)
def _layout(count: int) -> Struct:
    return Struct(f"<Q{count}d")


@lru_cache(NAMES_SHARED)
def names_of(mask: int) -> tuple[str, ...]:
    """The components that a mask stands for, in display order."""
    return tuple(name for name, bit in _BITS.items() if mask & bit)


def mask_of(names: Iterable[str]) -> int:
    """One number that stands for some components.

    >>> names_of(mask_of(["stalled", "training", "stalled"]))
    ('training', 'stalled')
    """
    return sum({_BITS[name] for name in names})


class Moments(Mapping[int, float]):
    """Unix seconds by rank, in order of ranks; equal to a mapping of the same.

    >>> moments = Moments({7: 2.0, 0: 1.5})
    >>> moments, moments.get(3), moments == {0: 1.5, 7: 2.0}
    ({0: 1.5, 7: 2.0}, None, True)
    """

    __slots__ = ("_packed",)

    def __init__(self, moments: Mapping[int, float]) -> None:
        """Hold these."""
        self._packed = b"".join(_MOMENT.pack(rank, moments[rank]) for rank in sorted(moments))

    def __getitem__(self, rank: int) -> float:
        """The moment of a rank."""
        return dict(self.items())[rank]

    def __iter__(self) -> Iterator[int]:
        """The ranks in order."""
        return iter(dict(self.items()))

    def __len__(self) -> int:
        """How many ranks there are."""
        return len(self._packed) // _MOMENT.size

    def items(self) -> ItemsView[int, float]:
        """Ranks with their moments, in order."""
        return dict(_MOMENT.iter_unpack(self._packed)).items()

    def __eq__(self, other: object) -> bool:
        """Whether another mapping holds the same."""
        if isinstance(other, Moments):
            return self._packed == other._packed
        return dict(self.items()) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a dictionary has none

    def __repr__(self) -> str:
        """As a dictionary of them."""
        return repr(dict(self.items()))


def plain(value: object) -> object:
    """For encoders, which know dictionaries only.

    Raises:
        NotImplementedError: the value is none of these.
    """
    if isinstance(value, (Amounts, Moments)):
        return dict(value.items())
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded")
