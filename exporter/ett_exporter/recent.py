"""Mappings of bounded size: what they forget is read again by whoever asks for it."""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Keeps the `most` entries that were used last; held by one thread at a time.

    >>> recent = Recent(2)
    >>> recent.put("a", 1); recent.put("b", 2); recent.get("a"); recent.put("c", 3)
    1
    >>> recent.get("b"), recent.get("a")
    (None, 1)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """What is remembered under a key, None where nothing is."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Remember a value; the entry that was not used for longest may go."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forget an entry."""
        self._entries.pop(key, None)


class AtHand(Generic[K, V]):
    """Keeps up to `most` entries; which one goes for a new one is left to chance. Any thread may call.

    Where all of very many are asked for, again and again, a share of them is there; of those that were used
    last, none would be.
    """

    def __init__(self, most: int, seed: int = 0) -> None:
        self._most = most
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._lock = threading.Lock()
        self._keys: list[K] = []
        self._entries: dict[K, V] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._keys)

    def get(self, key: K) -> V | None:
        """What is kept under a key, None where nothing is."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value; another may go."""
        with self._lock:
            if key not in self._entries:
                if len(self._keys) < self._most:
                    self._keys.append(key)
                else:
                    place = self._random.randrange(self._most)
                    del self._entries[self._keys[place]]
                    self._keys[place] = key
            self._entries[key] = value
