"""Functions put around public methods of single objects for a while.

Used by the training thread. Only the object given is changed, and `restore` leaves it as it was;
where somebody else has put a function of theirs around ours meanwhile, theirs stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
ABSENT = object()


class Seams:
    """What was put around methods, to be taken away again.

    >>> class Saver:
    ...     def save(self):
    ...         return "saved"
    >>> seams, saver = Seams(), Saver()
    >>> seams.around(saver, "save", lambda save: lambda: f"well {save()}")
    >>> saver.save(), seams.restore(), saver.save(), vars(saver)
    ('well saved', None, 'saved', {})
    """

    def __init__(self) -> None:
        self._placed: list[tuple[Any, str, object, object]] = []

    def around(self, thing: Any, name: str, wrapper: Callable[[Function], Function]) -> None:  # noqa: ANN401
        """Put a function around a method of an object or a class; nothing where there is no such method."""
        method = getattr(thing, name, None)
        if not callable(method):
            return
        before = vars(thing).get(name, ABSENT)
        ours = wrapper(method)
        setattr(thing, name, ours)
        self._placed.append((thing, name, ours, before))

    def restore(self) -> None:
        """Take everything away, the last first."""
        while self._placed:
            thing, name, ours, before = self._placed.pop()
            if vars(thing).get(name) is not ours:
                continue
            if before is ABSENT:
                delattr(thing, name)
            else:
                setattr(thing, name, before)
