"""Saves that do not hold up the training, into a store that does not lie, told as they come about.

All ranks call the same methods in the same order, on their training threads. A save copies the
state, or (mode `sync`) writes it, then goes on on a thread of its own, over a process group of its own; in
mode `async_process` the files are written by a process beside each rank. One save is in flight: the next
one waits for it, up to `patience_s`, and then is given up on all ranks. A save that fails, for
whatever reason, is told, and training goes on; one that hangs at the end is given up, too.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.planner import SavePlanner

from ett_core.waits import LONGEST_WAIT_S
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.agreement import all_agree
from ett_trainer_hooks.pipeline.checkpoint.arena import Arena
from ett_trainer_hooks.pipeline.checkpoint.deferral import Deferral
from ett_trainer_hooks.pipeline.checkpoint.fates import Fates, Listener
from ett_trainer_hooks.pipeline.checkpoint.found import Found, UnavailableError
from ett_trainer_hooks.pipeline.checkpoint.homes import Ranks, home_of
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.resumable import Resumable, is_resumable, key_of, packed, unpack
from ett_trainer_hooks.pipeline.checkpoint.scribe import Scribe
from ett_trainer_hooks.pipeline.checkpoint.snapshot import (
    FailedPlanner,
    LivePlanner,
    SnapshotPlanner,
    snapshot,
)
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.checkpoint.writer import StoreWriter, write_files
from ett_trainer_hooks.pipeline.good_end import end_well_despite
from ett_trainer_hooks.recording.spans import SaveSpan

Mode = Literal["sync", "async_thread", "async_process"]
TRACK = "checkpoint"
"""The track of what goes on beside the training."""
PATIENCE_S = 60.0
CLOSE_PATIENCE_S = 600.0


class Checkpointer:
    """Saves into a store and resumes from it.

    Args:
        store: the same on every rank: one that they share, or the disk of the node before a remote store.
        recorder: what is told to.
        remote: behind a store that they share, a second place, to which rank 0 brings what is committed; only
            there it counts as durable.
        mode: `sync` writes while the trainer waits; `async_thread` and `async_process` copy meanwhile.
        threads: threads that write a rank's files.
        patience_s: longest wait for the save before.
        close_patience_s: longest wait at the end for what is not durable yet.
        told: hears, too, what becomes of each save, such as a `CheckpointPolicy`; on any thread.
    """

    def __init__(  # noqa: PLR0913 - settings
        self,
        store: CheckpointStore | NodeDisk,
        recorder: Recorder,
        *,
        remote: RemoteStore | None = None,
        mode: Mode = "async_thread",
        threads: int = 1,
        patience_s: float = PATIENCE_S,
        close_patience_s: float = CLOSE_PATIENCE_S,
        told: Listener | None = None,
    ) -> None:
        self.store = store
        self._recorder = recorder
        self._told_mode = "sync" if mode == "sync" else "async"
        self._threads = threads
        self._patience_s = patience_s
        self._close_patience_s = close_patience_s
        self._ended_well: bool | None = None
        self._ranks = Ranks()
        self._home = home_of(store, remote, self._ranks)
        self._arena = Arena(shared=mode == "async_process") if mode != "sync" else None
        self._scribe = Scribe() if mode == "async_process" else None
        self._deferral = Deferral(recorder)
        self._fates = Fates(recorder, store, remote, leads=self._ranks.rank == 0, told=told)
        self._flight: threading.Thread | None = None
        if not self._ranks.joined:  # torch says at every save that one process saves alone
            warnings.filterwarnings("ignore", message="torch.distributed is (disabled|unavailable)")

    def no_wait(self, model: torch.nn.Module, *optimizers: torch.optim.Optimizer) -> None:
        """Let copies of weights be made during the next forward pass of the model; `save` returns before.

        What is saved besides must not change before the backward pass of the model, nor may the model's
        forward pass change its parameters, as caches of tables on a GPU do.
        """
        self._deferral.guard(model, optimizers)

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        *,
        own: Mapping[str, Resumable] | None = None,
        metrics: Mapping[str, float] | None = None,
        patience_s: float | None = None,
    ) -> None:
        """Save the state after `step`; when this returns, it may change (but see `no_wait`).

        Args:
            step: steps completed.
            state: what `torch.distributed.checkpoint` takes, the same keys on every rank.
            own: what each rank has for itself.
            metrics: what the retention may go by.
            patience_s: longest wait for the save before; by default that of the checkpointer.
        """
        patience_s = min(self._patience_s if patience_s is None else patience_s, LONGEST_WAIT_S)
        with self._recorder.checkpoint(step, mode=self._told_mode) as span:
            began_s = time.monotonic()
            free = self._wait_for_previous(patience_s)
            span.wait_previous_s = time.monotonic() - began_s
            if free:
                go_on = self._begin(span, {**state}, own or {}, metrics or {})
        if free:
            go_on()
        else:
            late = f"the save before is still being written after {patience_s:g} s"
            self._fates.failed(span, late)

    def find(self) -> Found:
        """The newest intact checkpoint; tells which were passed over, and why.

        One that is damaged for good is set aside, where the store can be written to.

        Raises:
            OSError: the store cannot be read; UnavailableError: there are checkpoints, but none can be had
                now, such as from a network that is down, or made by another version.
            RemoteError: the remote store cannot be asked, and there is nothing else.
        """
        found = self._home.find()
        if found.manifest is None and (now := [each for each in found.passed_over if not each.lasting]):
            raise UnavailableError(f"the checkpoint of step {now[0].step} cannot be had now: {now[0].why}")
        if self._ranks.rank == 0:
            self._fates.found(found)
        return found

    def load(self, found: Found, state: dict[str, Any], *, own: Mapping[str, Resumable] | None = None) -> int:
        """Read a checkpoint into the tensors of `state`, and what is this rank's own; returns its step.

        Objects of `state` are replaced in it. What ranks have for themselves cannot be taken over by
        another number of ranks: it stays as it is, and a decision tells so.
        """
        if found.manifest is None or found.directory is None:
            return 0
        reader = self._home.reader(found)
        held = reader.read_metadata().state_dict_metadata
        key, same = key_of(self._ranks.rank), found.manifest.world_size == self._ranks.count
        mine = {key: b""} if own and same and key in held else {}
        wanted = {**state, **mine}
        dcp.load(wanted, storage_reader=reader, process_group=self._ranks.group)
        state.update({name: value for name, value in wanted.items() if name not in mine})
        missing = unpack(wanted[key], own) if own and mine else sorted(own or ())
        why = f"the checkpoint of step {found.manifest.step} does not hold it"
        if not same:
            why = f"{found.manifest.world_size} ranks saved it, {self._ranks.count} resume"
        for name in missing:
            self._recorder.decision(f"{name} of this rank begins anew", why)
        return found.manifest.step

    def resume(self, state: dict[str, Any], *, own: Mapping[str, Resumable] | None = None) -> int:
        """Find and load, as the phase `checkpoint_load`; the step resumed from, 0 where there is none."""
        with self._recorder.phase("checkpoint_load") as span:
            step = span.resumed_step = self.load(self.find(), state, own=own)
        return step

    @property
    def fault(self) -> str:
        """Why the save told of last has failed, as far as this rank knows; empty where it has not."""
        return self._fates.fault

    def wait(self, patience_s: float | None = None) -> bool:
        """Until the save in flight is over and told; False where that takes longer than `patience_s`."""
        if self._flight is not None and self._flight.is_alive():
            limit_s = None if patience_s is None else min(patience_s, LONGEST_WAIT_S)
            with self._recorder.phase("checkpoint"):
                self._flight.join(limit_s)
        return self._flight is None or not self._flight.is_alive()

    def wait_until_durable(self, patience_s: float | None = None) -> bool:
        """Wait for the save in flight and for uploads; told as blocking.

        False where they take longer than `patience_s`, by default that of the end: the last checkpoint is
        not there yet, or in the store alone.
        """
        limit_s = min(self._close_patience_s if patience_s is None else patience_s, LONGEST_WAIT_S)
        ends_s = time.monotonic() + limit_s
        if not self.wait(limit_s):
            return False
        if self._fates.wait(0.0):
            return True
        with self._recorder.phase("checkpoint"):
            return self._fates.wait(max(0.0, ends_s - time.monotonic()))

    def close(self, patience_s: float | None = None) -> bool:
        """As `wait_until_durable`, then end what was begun beside the training; nothing is saved after it.

        What is not durable by then is told as failed and will never be committed, and the process may end:
        what was published before is whole. Only the first call waits.
        """
        if self._ended_well is None:
            limit_s = self._close_patience_s if patience_s is None else patience_s
            self._ended_well = self.wait_until_durable(limit_s)
            if not self._ended_well:
                self._fates.give_up(f"given up at the end: not durable after a wait of {limit_s:g} s")
                if self._flight is not None:
                    end_well_despite(self._flight)
            if self._scribe is not None:
                self._scribe.close()
        return self._ended_well

    def _wait_for_previous(self, patience_s: float) -> bool:
        """Whether no rank has a save in flight any longer."""
        if self._flight is None:
            return True
        self._flight.join(patience_s)
        over = not self._flight.is_alive()
        return all_agree(b"over" if over else None) if self._ranks.joined else over

    def _begin(
        self,
        span: SaveSpan,
        state: dict[str, Any],
        own: Mapping[str, Resumable],
        metrics: Mapping[str, float],
    ) -> Callable[[], None]:
        """What keeps the trainer waiting of a save; returns what is to be done once it need not wait."""
        writer, began_s = self._writer(span.saved_step, metrics), time.monotonic()
        planner = self._planner(state, own)
        if self._arena is None:
            error = self._error_of_writing(writer, planner)
            return lambda: self._fates.ended(span, error, began_s)
        span.staging_s = time.monotonic() - began_s
        self._deferral.begin()
        flight = threading.Thread(
            target=self._fly, args=(span, writer, planner, began_s), name="checkpoint", daemon=True
        )
        self._flight = flight
        self._fates.began(span)
        return lambda: self._begin_flight(flight)

    def _begin_flight(self, flight: threading.Thread) -> None:
        try:
            flight.start()
        except RuntimeError:  # no thread can be had: the other ranks count on this one all the same
            self._flight = None
            flight.run()

    def _writer(self, step: int, metrics: Mapping[str, float]) -> StoreWriter:
        write = write_files if self._scribe is None else self._scribe.write
        permit = self._fates.permit_to_commit
        return self._home.writer(step, metrics=metrics, threads=self._threads, write=write, permit=permit)

    def _planner(self, state: dict[str, Any], own: Mapping[str, Resumable]) -> SavePlanner:
        """Of the live state, or of its copy; the other ranks hear of one that cannot be had."""
        try:
            whole = {
                key: value.state_dict() if is_resumable(value) else value for key, value in state.items()
            }
            if own:
                whole[key_of(self._ranks.rank)] = packed(own)
            if self._arena is None:
                return LivePlanner(whole)
            may_wait = self._deferral.may_wait()
            return SnapshotPlanner(
                snapshot(whole, self._arena, leads=self._ranks.rank == 0, may_wait=may_wait)
            )
        except Exception as error:  # noqa: BLE001 - objects of all kinds raise errors of all kinds
            return FailedPlanner(error)

    def _error_of_writing(self, writer: StoreWriter, planner: SavePlanner) -> BaseException | None:
        """Write, and commit, together with the other ranks; returns why it did not come to that."""
        try:
            dcp.save({}, storage_writer=writer, planner=planner, process_group=self._ranks.group)
        except (Exception, CheckpointException) as error:  # noqa: BLE001 - whatever it is, training goes on
            return error
        return None

    def _fly(self, span: SaveSpan, writer: StoreWriter, planner: SavePlanner, began_s: float) -> None:
        """What goes on beside the training: a thread."""
        planner = self._with_all_copies(planner, span, began_s)
        self._deferral.done()
        upload_began_s = time.monotonic()
        with self._recorder.phase("checkpoint_upload", track=TRACK, step=span.saved_step):
            error = self._error_of_writing(writer, planner)
        span.upload_s = time.monotonic() - upload_began_s
        self._fates.ended(span, error, began_s)

    def _with_all_copies(self, planner: SavePlanner, span: SaveSpan, began_s: float) -> SavePlanner:
        if not isinstance(planner, SnapshotPlanner) or planner.taken.complete:
            return planner
        try:
            with self._recorder.phase("checkpoint_staging", track=TRACK, step=span.saved_step):
                planner.taken.copy_rest()
        except Exception as error:  # noqa: BLE001 - the other ranks hear of it
            return FailedPlanner(error)
        span.staging_s = time.monotonic() - began_s
        return planner
