"""What the store says when it cannot."""

from __future__ import annotations


class StoreError(RuntimeError):
    """The store cannot be opened, read or written; the message says why in one sentence."""


class InDoubtError(StoreError):
    """The connection was lost during a commit, or between several: what was made durable, nobody can say.

    Sent again, each line counts once. What was folded of the job may lack it until it is folded anew.
    """
