"""Saves that stand still at the n-th thing they do to files, for many n, while a later start takes over.

The earlier start is a process of its own, both have names of machines of their own. It is told to go on
once the later one has looked for checkpoints, while that saves, or once it has. Prints a JSON list: for each
save, how it ended, what the later start had found, what was there just before and after the earlier one went
on, and at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from kill_at import kill_at

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import claim
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.takes import Lease, LostError, Machine, Start

LOST = 7
"""The status of an earlier start that ends as it has lost its lease."""
MOMENTS = ("found", "saving", "saved")


def claimed(root: Path, node: str, launch: int) -> Lease:
    return claim(
        root,
        Recorder.from_env({}),
        start=Start(launch, launch),
        here=Machine(node, f"kernel of {node}"),
        pause=lambda _: sys.exit("it waits"),
        say=lambda _: None,
    )


def store_of(root: Path, lease: Lease | None = None) -> CheckpointStore:
    return CheckpointStore(root / "committed", retention=Retention(last=2), lease=lease, workers=1)


def begun(store: CheckpointStore, step: int, content: str) -> Path:
    directory = store.begin(step)
    try:
        (directory / "__0_0.distcp").write_text(content)
    except FileNotFoundError:
        store.check_lease()
        raise
    return directory


def save(store: CheckpointStore, step: int, content: str) -> None:
    store.commit(begun(store, step, content), step)
    store.retire()


def earlier(root: Path, step: int, number: int) -> int:
    """Saves, and stands still at the number-th thing that it does; in a child."""
    store = store_of(root, claimed(root, "n1", 0))
    save(store, 100, "earlier 100")
    save(store, 200, "earlier 200")
    kill_at(number, str(root), by=signal.SIGSTOP)
    try:
        save(store, step, "earlier at last")
    except LostError:
        return LOST
    return 0


def forked(root: Path, step: int, number: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(earlier(root, step, number))
        except BaseException as error:  # noqa: BLE001 - the parent goes by the status
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return pid


def went_on(pid: int) -> int:
    os.kill(pid, signal.SIGCONT)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def held(store: CheckpointStore) -> dict[str, object]:
    found = store.newest_intact()
    assert found.manifest is not None, found.passed_over
    content = (found.directory / "__0_0.distcp").read_text()
    return {"step": found.manifest.step, "commit": found.manifest.commit, "content": content}


class Pair:
    """An earlier start that stands still, and the store of the later one; it goes on at the `moment`."""

    def __init__(self, pid: int, store: CheckpointStore, moment: str) -> None:
        self._pid, self._store, self._moment = pid, store, moment
        self.seen: dict[str, object] = {}

    def at(self, moment: str) -> None:
        if moment == self._moment:
            self.seen["before"] = held(self._store)
            self.seen["ended"] = went_on(self._pid)
            self.seen["after"] = held(self._store)


def one(root: Path, step: int, number: int, moment: str) -> dict[str, object] | None:
    """A save of the earlier start that stands still there; None where it gets through before."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    pid = forked(root, step, number)
    status = os.waitpid(pid, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        assert os.waitstatus_to_exitcode(status) == 0
        return None
    with ExitStack() as leaving:
        lease = claimed(root, "n2", 1000)
        leaving.callback(lease.release)
        store = store_of(root, lease)
        store.take_over()
        found = held(store)
        pair = Pair(pid, store, moment)
        pair.at("found")
        directory = begun(store, step, "later")
        pair.at("saving")
        store.commit(directory, step)
        pair.at("saved")
        store.retire()
        last, latest = held(store), (store.root / "latest").read_text().strip()
        save(store, 900, "later 900")
        left = sorted(path.name for path in store.root.iterdir())
    return {**pair.seen, "found": found, "last": last, "latest": latest, "left": left}


def sweep(root: Path, step: int, moment: str, stride: int) -> list[dict[str, object]]:
    """What comes of a save at every point, or at every so many: at others for each moment."""
    results: list[dict[str, object]] = []
    number = 1 + MOMENTS.index(moment) % stride
    while (result := one(root, step, number, moment)) is not None:
        results.append(result)
        number += stride
    return results


if __name__ == "__main__":
    place, every, *kinds = sys.argv[1:]
    print(
        json.dumps(
            {kind: sweep(Path(place), int(kind.split()[0]), kind.split()[1], int(every)) for kind in kinds}
        )
    )
