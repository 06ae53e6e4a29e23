"""Committed checkpoints on their way to a remote store, one at a time, beside the training.

A thread of the lead process does it. What waits is overtaken by what is committed later: a slow remote
gets fewer checkpoints, never older ones, and holds nothing up. Each checkpoint is told of once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import msgspec

from ett_trainer_hooks.pipeline.checkpoint.manifest import Manifest
from ett_trainer_hooks.pipeline.checkpoint.permit import GivenUpError, Permit
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteError, RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.takes import LostError


class Upload(msgspec.Struct, frozen=True):
    """What became of an upload: it is there, unless `error` says why not, or it was `overtaken`.

    `untidy`: why what the remote no longer wants is still there.
    """

    manifest: Manifest
    seconds: float
    error: str = ""
    overtaken: bool = False
    untidy: str = ""


class _Order(NamedTuple):
    """A checkpoint that is to be uploaded, and what keeps it on the disk until then."""

    manifest: Manifest
    held: ExitStack
    maybe_there: bool


class Uploads:
    """Brings checkpoints of a store to a remote one.

    Args:
        store: where they are committed; one that is waiting or on its way is not retired there.
        remote: where they go.
        tell: called once for each that was offered, on whichever thread knows.
        permit: whether one may still come to exist there.
    """

    def __init__(
        self,
        store: CheckpointStore,
        remote: RemoteStore,
        tell: Callable[[Upload], None],
        permit: Permit | None = None,
    ) -> None:
        self._store = store
        self._permit = permit or Permit()
        self._remote = remote
        self._tell = tell
        self._changed = threading.Condition()
        self._waiting: _Order | None = None
        self._idle = True

    def offer(self, manifest: Manifest, *, maybe_there: bool = False) -> None:
        """Have a committed checkpoint uploaded, also one that is `maybe_there` already.

        Returns at once, unless no thread can be had.
        """
        held = ExitStack()
        held.enter_context(self._store.hold(manifest))
        with self._changed:
            overtaken, self._waiting = self._waiting, _Order(manifest, held, maybe_there)
            begins, self._idle = self._idle, False
        if begins:
            uploading = threading.Thread(target=self._run, name="checkpoint uploads", daemon=True)
            try:
                uploading.start()
            except RuntimeError:
                uploading.run()
        if overtaken is not None:
            overtaken.held.close()
            self._tell(Upload(overtaken.manifest, 0.0, overtaken=True))

    def wait(self, patience_s: float | None = None) -> bool:
        """Until nothing is on its way or waiting; False where that takes longer than `patience_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._idle, patience_s)

    def _run(self) -> None:
        try:
            while (order := self._next()) is not None:
                with order.held:
                    upload = self._upload(order)
                self._tell(upload)
        except BaseException:
            self._rest()  # whoever waits for this thread must not wait for ever
            raise

    def _next(self) -> _Order | None:
        with self._changed:
            order, self._waiting = self._waiting, None
            if order is None:
                self._rest()
            return order

    def _rest(self) -> None:
        with self._changed:
            self._idle = True
            self._changed.notify_all()

    def _upload(self, order: _Order) -> Upload:
        began_s, manifest = time.monotonic(), order.manifest
        try:
            self._remote.upload(
                self._store.path_of(manifest.step), manifest, self._permit, maybe_there=order.maybe_there
            )
        except (RemoteError, OSError, GivenUpError, LostError) as error:
            return Upload(manifest, time.monotonic() - began_s, str(error))
        seconds = time.monotonic() - began_s
        try:
            self._remote.retire()
        except (RemoteError, OSError) as error:
            return Upload(manifest, seconds, untidy=str(error))
        return Upload(manifest, seconds)
