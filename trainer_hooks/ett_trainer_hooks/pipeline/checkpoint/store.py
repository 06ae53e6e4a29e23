"""Checkpoints that a kill at any moment cannot spoil: a directory a step, its name last.

    step_400.3-5f0c2a11.partial/   being written, by the holder of the third lease; never read
    step_300/                committed: its files, and manifest.json with their sizes and hashes
    step_300.old/            what step_300 was before it was written again, until the new one has its name
    step_200.damaged/        set aside by a start that found it damaged
    latest                   the name of the one committed last, for people and scripts

All ranks share the directory. One process, the lead, calls what changes the store; the others write
their files into the directory that `begin` gave. Every call does its work before it returns; nothing
here starts a thread that outlives a call. A store that fails raises OSError, for the caller to tell.

A lead that has lost its lease publishes nothing, whatever it stood still in: it looks at the lease once its
partial directory is there, whoever comes after it takes the lease and then that directory away (`take_over`),
and without it nothing gets its name.

    earlier lead   mkdir partial    lease is mine     ...        partial -> step_400
    later lead                           lease is mine    take_over: partial -> gone     newest_intact
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from ett_trainer_hooks.pipeline.checkpoint import half_done
from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.found import Found, PassedOver
from ett_trainer_hooks.pipeline.checkpoint.half_done import OLD, PARTIAL, beside, remove
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, FileMark, Manifest
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention, retired
from ett_trainer_hooks.pipeline.durable import put_whole, sync_folder
from ett_trainer_hooks.pipeline.publishing.handover import anchors_in_use
from ett_trainer_hooks.pipeline.takes import Lease, LostError

LATEST = "latest"
DAMAGED = ".damaged"
_NAME = re.compile(r"step_(\d+)(\.old)?")


class CheckpointStore:
    """The checkpoints under one directory, which need not exist yet.

    Args:
        root: where they lie.
        retention: which of them stay.
        lease: of this process, where another start may come (`sole_writer`); once lost, nothing is published.
        workers: files that are hashed at once.
        now: Unix seconds.
    """

    shared = True

    def __init__(
        self,
        root: Path,
        *,
        retention: Retention | None = None,
        lease: Lease | None = None,
        workers: int = manifests.WORKERS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.root = root
        self._lease = lease
        self._retention = retention or Retention()
        self._workers = workers
        self._now = now
        self._held: list[str] = []

    def begin(self, step: int) -> Path:
        """A new, empty directory for the files of a step; what interrupted saves have left is cleared away.

        Its name is unlike any before: ranks of an earlier attempt that still run do not write into it.

        Raises:
            LostError: another start has taken over.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        self.clear_up()
        directory = self._partial(f"step_{step}")
        directory.mkdir()
        try:
            self.check_lease()
        except BaseException:
            self.abandon(directory)
            raise
        return directory

    def commit(
        self,
        directory: Path,
        step: int,
        *,
        world_size: int = 1,
        metrics: Mapping[str, float] | None = None,
        files: Mapping[str, FileMark] | None = None,
    ) -> Manifest:
        """Make the checkpoint exist: once this returns, it survives the death of all processes.

        `files`: what the ranks have written and brought to the disk, hashed by them; by default every
        file of the directory is, here.

        Raises:
            DamagedError: files are not as the ranks wrote them, or others are there.
            LostError: another start has taken over.
        """
        with self._while_mine():
            if files is None:
                names = manifests.names_in(directory)
                files = manifests.marks(directory, names, workers=self._workers, sync=True)
            manifest = Manifest(
                step=step,
                sequence=1 + max((each.sequence for each in self.committed()), default=0),
                commit=token_hex(8),
                world_size=world_size,
                made_at=self._now(),
                metrics=dict(metrics or {}),
                files=dict(files),
            )
            self._check_written(directory, manifest)
            self.adopt(directory, manifest)
        return manifest

    def adopt(self, directory: Path, manifest: Manifest) -> None:
        """Publish a directory of this store whose files are those of a manifest and are on the disk.

        Raises:
            LostError: another start has taken over.
        """
        final = self.path_of(manifest.step)
        with self._while_mine():
            self._publish(directory, manifest, final)
        sync_folder(self.root)
        with suppress(LostError), self._while_mine():  # it is published, what `latest` says is no longer ours
            put_whole(self.root / LATEST, f"{final.name}\n".encode(), self._partial(LATEST), self.check_lease)
        sync_folder(self.root)
        remove(beside(final, OLD))

    def abandon(self, directory: Path) -> None:
        """Give back the room of a checkpoint that will not be committed, as far as that is possible."""
        shutil.rmtree(directory, ignore_errors=True)

    def clear_up(self) -> None:
        """Take away what interrupted saves have left; not while a save is going on.

        Raises:
            LostError: another start has taken over.
        """
        self.check_lease()
        half_done.clear(self.root, None if self._lease is None else self._lease.number)

    def take_over(self) -> None:
        """Let nothing be published any more that earlier holders of the lease have begun; any time.

        Raises:
            OSError: the store cannot be changed.
        """
        if self._lease is not None:
            for begun in half_done.written(self.root, self._lease.number - 1):
                half_done.take_away(begun)

    def check_lease(self) -> None:
        """Go on only while no other start has taken over.

        Raises:
            LostError: one has.
        """
        if self._lease is not None:
            self._lease.check(anew=True)

    def retire(self) -> list[int]:
        """Remove what the retention no longer wants; returns its steps.

        What is held, or handed over and not published yet, stays. A checkpoint that was set aside goes
        with the older ones.
        """
        committed, spared = self.committed(), {*self._held, *anchors_in_use(self.root, self._now())}
        leaving = [each for each in retired(committed, self._retention) if each.commit not in spared]
        for manifest in leaving:
            self.check_lease()
            with self._while_mine():
                remove(self._published()[manifest.step])
        if leaving:
            oldest_s = min(each.made_at for each in committed if each not in leaving)
            for aside in self.root.glob(f"step_*{DAMAGED}"):
                if aside.stat().st_mtime < oldest_s:
                    remove(aside)
        return [manifest.step for manifest in leaving]

    @contextmanager
    def hold(self, manifest: Manifest) -> Iterator[None]:
        """Meanwhile this process does not retire a checkpoint, such as one that is being uploaded."""
        self._held.append(manifest.commit)
        try:
            yield
        finally:
            self._held.remove(manifest.commit)

    def committed(self) -> list[Manifest]:
        """Checkpoints whose manifest can be read, newest first; their files are not looked at."""
        return [manifest for manifest, _ in self._ranked()[0]]

    def newest_intact(self) -> Found:
        """The checkpoint that was committed last of all that are whole, every file of it read and checked.

        Changes nothing, so a store that is read-only will do.
        """
        ranked, passed_over = self._ranked()
        for manifest, directory in ranked:
            fault = _fault(manifest, directory, self._workers)
            if fault is None:
                return Found(manifest, directory, tuple(passed_over))
            passed_over.append(fault)
        return Found(None, None, tuple(passed_over))

    def set_aside(self, step: int) -> Path:
        """Take a damaged checkpoint out of the way: it is no longer asked, and its name is free again."""
        directory = self._published()[step]
        aside = beside(self.path_of(step), DAMAGED)
        remove(aside)
        directory.replace(aside)
        aside.touch()
        return aside

    def manifest_of(self, step: int) -> Manifest:
        """Of the checkpoint of a step.

        Raises:
            DamagedError: there is none that can be used.
            OSError: the store cannot be read now.
        """
        return manifests.read(self.path_of(step))

    def path_of(self, step: int) -> Path:
        """Where the checkpoint of a step lies once it is committed."""
        return self.root / f"step_{step}"

    def _publish(self, directory: Path, manifest: Manifest, final: Path) -> None:
        name = directory / manifests.NAME
        put_whole(name, manifests.encoded(manifest), beside(name, PARTIAL))
        sync_folder(directory)
        self.check_lease()
        old = beside(final, OLD)
        if final.exists():
            final.replace(old)
        try:
            directory.replace(final)
        except BaseException:
            if old.exists() and not final.exists():
                old.replace(final)
            raise

    @contextmanager
    def _while_mine(self) -> Iterator[None]:
        """Who took over has taken away what is missing now, and the error says so."""
        try:
            yield
        except (FileNotFoundError, DamagedError):
            self.check_lease()
            raise

    def _partial(self, name: str) -> Path:
        return half_done.partial(self.root, name, 0 if self._lease is None else self._lease.number)

    def _ranked(self) -> tuple[list[tuple[Manifest, Path]], list[PassedOver]]:
        """Checkpoints that have a manifest, newest first, and those whose manifest tells nothing."""
        read = [(_read_or_fault(step, path), path) for step, path in self._published().items()]
        ranked = [(each, path) for each, path in read if isinstance(each, Manifest)]
        ranked.sort(key=lambda each: each[0].sequence, reverse=True)
        return ranked, [each for each, _ in read if isinstance(each, PassedOver)]

    def _published(self) -> dict[int, Path]:
        """Directories of committed checkpoints by step: an old one only where the new one has no name yet."""
        entries = sorted(self.root.iterdir()) if self.root.is_dir() else []
        named = [(match, entry) for entry in entries if (match := _NAME.fullmatch(entry.name))]
        named.sort(key=lambda each: each[0][2] is None)  # the final name last: it wins
        return {int(match[1]): entry for match, entry in named}

    def _check_written(self, directory: Path, manifest: Manifest) -> None:
        sizes = {name: manifests.size_of(directory / name) for name in manifest.files}
        faults = [
            f"{name} has {sizes[name]} bytes, {mark.size} were written"
            for name, mark in manifest.files.items()
            if sizes[name] != mark.size
        ]
        faults += [f"{name} is of no rank" for name in manifests.strangers(directory, manifest.files)]
        if faults:
            raise DamagedError(f"step {manifest.step} is not committed: {manifests.summary(faults)}")


def _read_or_fault(step: int, directory: Path) -> Manifest | PassedOver:
    try:
        return manifests.read(directory)
    except (DamagedError, OSError) as error:
        return _passed_over(step, error)


def _fault(manifest: Manifest, directory: Path, workers: int) -> PassedOver | None:
    try:
        manifests.check(directory, manifest.files, workers=workers)
    except (DamagedError, OSError) as error:
        return _passed_over(manifest.step, error)
    return None


def _passed_over(step: int, error: Exception) -> PassedOver:
    return PassedOver(step, str(error), lasting=type(error) is DamagedError)
