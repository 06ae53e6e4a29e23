"""What becomes of saves, told to the recorder, and the tidying up that follows.

A save is durable once it is committed, or, with a remote store, once it is there. One rank, that which
commits, says so; that it failed is said by every rank that knows. A save has one fate: what is given up is
not committed any more. Called on whichever thread knows.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Protocol

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.found import Found
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, Manifest
from ett_trainer_hooks.pipeline.checkpoint.permit import Permit
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteError, RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.checkpoint.uploads import Upload, Uploads
from ett_trainer_hooks.pipeline.takes import LostError
from ett_trainer_hooks.recording.spans import SaveSpan, describe

CUT = "the process ended before the save was complete"


class Listener(Protocol):
    """Hears what becomes of saves; a rank that does not lead knows of a durable one once it is committed."""

    def durable(self, step: int) -> None:
        """The save of a step would now survive the death of the job."""
        ...

    def failed(self, step: int) -> None:
        """The save of a step will never be durable."""
        ...


class Kept(Protocol):
    """The store that is tidied up after saves: by the rank that leads where it is shared, else by each."""

    @property
    def shared(self) -> bool:
        """All ranks have the same one."""
        ...

    def manifest_of(self, step: int) -> Manifest:
        """Of the checkpoint of a step."""
        ...

    def retire(self) -> list[int]:
        """Remove what is no longer wanted."""
        ...

    def clear_up(self) -> None:
        """Remove what a save that failed has left."""
        ...


class Fates:
    """Tells what becomes of the saves of this rank; `leads`: for all ranks."""

    def __init__(
        self,
        recorder: Recorder,
        store: Kept,
        remote: RemoteStore | None,
        *,
        leads: bool,
        told: Listener | None = None,
    ) -> None:
        self._recorder = recorder
        self._store = store
        self._leads = leads
        self._told = told
        self._permit = Permit(store.check_lease) if isinstance(store, CheckpointStore) else Permit()
        self._uploads = None
        if isinstance(store, CheckpointStore) and remote and leads:
            self._uploads = Uploads(store, remote, self._uploaded, self._permit)
        self._on_their_way: dict[str, tuple[SaveSpan, float]] = {}
        self._changes = threading.Lock()
        self._awaited: set[SaveSpan] = set()
        self._given_up = False
        self.fault = ""
        """Why the save told of last has failed, as far as this rank knows; empty where it has not."""

    @property
    def permit_to_commit(self) -> Permit | None:
        """For commits to the store; None where only the remote one makes a save durable."""
        return self._permit if self._uploads is None else None

    def began(self, span: SaveSpan) -> None:
        """A save goes on beside the training; should the process end now, it has failed."""
        self._await(span)
        self._recorder.last_words = lambda: self.failed(span, CUT)

    def ended(self, span: SaveSpan, error: BaseException | None, began_s: float) -> None:
        """All ranks have written and the checkpoint is committed, or why it is not; begun at `began_s`."""
        if error is not None:
            self.failed(span, describe(error))
        else:
            self._committed(span, began_s)
        if self._leads or not self._store.shared:
            self._tidy_up(failed=error is not None)
        self._recorder.last_words = None

    def failed(self, span: SaveSpan, why: str) -> None:
        """The checkpoint will never be durable."""
        if self._is_awaited(span):
            self._tell_failed(span, why)

    def give_up(self, why: str) -> None:
        """What is not durable yet never will be, and is told as failed; nothing is told of it later.

        A rank that does not commit cannot know: it says that it waits no longer.
        """
        self._permit.revoke()
        with self._changes:
            left, self._awaited, self._given_up = self._awaited, set(), True
        self._recorder.last_words = None
        for span in sorted(left, key=lambda each: each.saved_step):
            if self._permit.has(span.saved_step):
                self._tell_durable(span)
            elif not self._leads:
                self._recorder.decision(f"the save of step {span.saved_step} is waited for no longer", why)
                self._tell_listener_of_failure(span)
            elif self._permit.is_committing(span.saved_step):
                self._tell_failed(span, f"{why}; it was just being committed, so the next start may find it")
            else:
                self._tell_failed(span, why)

    def found(self, found: Found) -> None:
        """What a start takes, and what it does not take, with the reason."""
        taken = "training starts anew" if found.manifest is None else f"step {found.manifest.step} is taken"
        for passed in found.passed_over:
            what = f"the checkpoint of step {passed.step} is passed over"
            self._recorder.decision(what, f"{passed.why}; {taken}")
        if found.fault:
            self._recorder.decision(
                "the remote store is not asked for a newer checkpoint", f"{found.fault}; {taken}"
            )
        if found.manifest is not None and found.only_here:
            self._bring(found.manifest)

    def wait(self, patience_s: float | None) -> bool:
        """Until nothing is on its way to the remote store; False where that takes longer."""
        return self._uploads is None or self._uploads.wait(patience_s)

    def _committed(self, span: SaveSpan, began_s: float) -> None:
        manifest = None
        if self._leads:
            with suppress(OSError, DamagedError):
                manifest = self._store.manifest_of(span.saved_step)
        span.bytes = manifest.size if manifest else None
        if span.mode == "async":
            self._recorder.save_ended(span)
        if manifest is not None and self._uploads is not None:
            self._upload(span, manifest, began_s)
        else:
            self._durable(span, began_s)

    def _bring(self, manifest: Manifest) -> None:
        """To the remote store, what an earlier attempt has committed and could not bring there."""
        if self._uploads is None or manifest.commit in self._on_their_way:
            return
        span = SaveSpan(self._recorder, manifest.step, "async")
        span.bytes = manifest.size
        self._recorder.decision(
            f"the checkpoint of step {manifest.step} is brought to the remote store",
            "an earlier attempt has committed it, and it is not known to be there",
        )
        self._upload(span, manifest, time.monotonic(), maybe_there=True)

    def _upload(
        self, span: SaveSpan, manifest: Manifest, began_s: float, *, maybe_there: bool = False
    ) -> None:
        assert self._uploads is not None  # noqa: S101 - for the type checker
        self._await(span)
        self._on_their_way[manifest.commit] = (span, began_s)
        self._uploads.offer(manifest, maybe_there=maybe_there)

    def _await(self, span: SaveSpan) -> None:
        with self._changes:
            self._awaited.add(span)

    def _is_awaited(self, span: SaveSpan) -> bool:
        """Whether somebody still wants to know what becomes of a save that is over."""
        with self._changes:
            self._awaited.discard(span)
            return not self._given_up

    def _tell_failed(self, span: SaveSpan, why: str) -> None:
        self.fault = why
        self._recorder.checkpoint_failed(span.saved_step, why, mode=span.mode)
        self._tell_listener_of_failure(span)

    def _tell_listener_of_failure(self, span: SaveSpan) -> None:
        if self._told is not None:
            self._told.failed(span.saved_step)

    def _durable(self, span: SaveSpan, began_s: float) -> None:
        if self._is_awaited(span):
            self._tell_durable(span, time.monotonic() - began_s)

    def _tell_durable(self, span: SaveSpan, duration_s: float | None = None) -> None:
        self.fault = ""
        if self._leads:
            self._recorder.durable(span.saved_step, mode=span.mode, bytes=span.bytes, duration_s=duration_s)
        if self._told is not None:
            self._told.durable(span.saved_step)

    def _uploaded(self, upload: Upload) -> None:
        span, began_s = self._on_their_way.pop(upload.manifest.commit)
        if upload.overtaken:
            self._overtaken(span)
        elif upload.error:
            self.failed(span, upload.error)
        else:
            self._durable(span, began_s)
        if upload.untidy:
            self._recorder.decision("checkpoints that are no longer wanted stay", upload.untidy)

    def _overtaken(self, span: SaveSpan) -> None:
        if not self._is_awaited(span):
            return
        why = "a later one was committed before its turn came"
        self._recorder.decision(f"the checkpoint of step {span.saved_step} is not uploaded", why)
        self._tell_listener_of_failure(span)

    def _tidy_up(self, *, failed: bool) -> None:
        try:
            if failed:
                self._store.clear_up()
            else:
                self._store.retire()
        except (OSError, RemoteError, LostError) as error:
            self._recorder.decision("checkpoints that are no longer wanted stay", describe(error))
