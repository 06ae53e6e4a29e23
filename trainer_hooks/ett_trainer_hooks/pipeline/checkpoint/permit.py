"""Whether saves may still come to exist: what was given up never does, however late its writing ends.

Of the process that commits, for all of its saves; used on any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class GivenUpError(Exception):
    """The save was given up before it was committed."""


class Permit:
    """Good for commits until it is revoked, or `may_commit` raises.

    >>> permit = Permit()
    >>> with permit.committing(300):
    ...     permit.revoke()
    >>> permit.has(300)
    True
    >>> with permit.committing(400):
    ...     pass
    Traceback (most recent call last):
    ...
    ett_trainer_hooks.pipeline.checkpoint.permit.GivenUpError: step 400 was given up before it was committed
    """

    def __init__(self, may_commit: Callable[[], object] = lambda: None) -> None:
        self._may_commit = may_commit
        self._changes = threading.Lock()
        self._revoked = False
        self._under_way: set[int] = set()
        self._there: set[int] = set()

    @contextmanager
    def committing(self, step: int) -> Iterator[None]:
        """Around the last thing that is done, after which the checkpoint of a step exists.

        Raises:
            GivenUpError: it must not; so what `may_commit` raises.
        """
        self._may_commit()
        with self._changes:
            if self._revoked:
                raise GivenUpError(f"step {step} was given up before it was committed")
            self._under_way.add(step)
        try:
            yield
            with self._changes:
                self._there.add(step)
        finally:
            with self._changes:
                self._under_way.discard(step)

    def revoke(self) -> None:
        """From now on nothing more begins to be committed."""
        with self._changes:
            self._revoked = True

    def has(self, step: int) -> bool:
        """Whether the checkpoint of a step was committed."""
        with self._changes:
            return step in self._there

    def is_committing(self, step: int) -> bool:
        """Whether it is just being committed, so that nobody can say whether it exists."""
        with self._changes:
            return step in self._under_way
