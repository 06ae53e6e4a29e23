"""What the store says when it cannot."""

from __future__ import annotations


class StoreError(RuntimeError):
    """The store cannot be opened, read or written; the message says why in one sentence."""


class InDoubtError(StoreError):
    """The connection was lost during a commit, or between several: what was made durable, nobody can say.

    Sent again, each line counts once. What was folded of the job may lack it until it is folded anew.
    """


class TakenError(StoreError):
    """Another exporter has taken over the database: this process speaks for its jobs no more."""


class UnfitError(StoreError):
    """The database does not take what it was given; it may well take the rest of what came with it."""
