"""One compilation a node: what local rank 0 compiles, the others wait for and load.

Each rank counts its compilations. Before its n-th, a follower waits until the leader is through
with its own n-th, then finds what the leader has published. Ranks that run the same program come
to their n-th graph at the same place, so the leader, which waits for nobody, always gets there:
no collective of the ranks is needed. Where programs differ the wait is bounded, and short where the
leader is not compiling.

Meeting place: a directory of the node for this start of the job, with a lock that the leader
holds as long as it lives (the kernel frees it), `state.json`, and `published.zip` (a bundle
without an entry: nobody but the user can write there).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ett_trainer_hooks.pipeline.bundle.files import write_whole
from ett_trainer_hooks.pipeline.bundle.trust import own_directory, why_untrusted

STATE, PUBLISHED, LOCK = "state.json", "published.zip", "leader.lock"
PREFIX = "ett-compile-"
OLD_S = 3600.0
"""Seconds without a change after which a place without a leader is taken to be left."""
LOOK_S = 0.02
NOT_COMPILING_S = 10.0
"""Longest wait for a leader that has not begun the graph in question."""
START_VARIABLES = (
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "MASTER_ADDR",
    "MASTER_PORT",
    "GROUP_RANK",
    "SLURM_JOB_ID",
    "SLURM_RESTART_COUNT",
    "ETT_JOB_ID",
    "ETT_ATTEMPT",
)
"""What tells one start of a job on a node from another."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How far the leader is."""

    rank: int = 0
    """The leader's global rank."""
    begun: int = 0
    """Compilations that it has begun, the one under way included."""
    done: int = 0
    """Compilations that it is through with."""
    published: str = ""
    """SHA-256 of what it has published; empty before."""
    keys: dict[str, list[str]] = {}
    """Of the artifacts in it, by kind."""
    over: bool = False
    """It expects to compile nothing more."""


class Wait(msgspec.Struct, frozen=True):
    """How a wait for the leader ended: seconds, and why there was nothing to wait for (or empty)."""

    waited_s: float
    why_not: str


_decoder = msgspec.json.Decoder(State)


def meeting_place(environ: Mapping[str, str] = os.environ, root: Path | None = None) -> Path:
    """The directory in which the ranks of a node meet in this start of the job."""
    told = "\n".join(environ.get(name, "") for name in START_VARIABLES)
    start = hashlib.sha256(told.encode()).hexdigest()[:16]
    return (root or Path(tempfile.gettempdir())) / f"{PREFIX}{os.getuid()}-{start}"


class Leader:
    """Local rank 0: says how far it is and publishes what it has. Used on any thread, one at a time.

    Raises:
        OSError: the directory cannot be made or is not the user's alone, or another leader is there.
    """

    def __init__(self, place: Path, rank: int) -> None:
        own_directory(place)
        _tidy(place)
        self._place = place
        self._lock = os.open(place / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise
        (place / PUBLISHED).unlink(missing_ok=True)
        self._state = State(rank=rank)
        self._say(self._state)

    def begin(self) -> None:
        """A compilation begins."""
        self._say(msgspec.structs.replace(self._state, begun=self._state.begun + 1))

    def publish(self, archive: bytes, keys: Mapping[str, list[str]]) -> None:
        """Let the others find what was compiled so far."""
        write_whole(self._place / PUBLISHED, archive, durable=False)
        sha256 = hashlib.sha256(archive).hexdigest()
        self._state = msgspec.structs.replace(
            self._state, published=sha256, keys={kind: list(some) for kind, some in keys.items()}
        )

    def end(self) -> None:
        """A compilation is over; what was published for it is there."""
        self._say(msgspec.structs.replace(self._state, done=self._state.done + 1))

    def leave(self) -> None:
        """No more compilations are expected: nobody needs to wait."""
        self._say(msgspec.structs.replace(self._state, over=True))

    def close(self) -> None:
        """Leave, and free the lock; what was published stays for those who come late, see `_tidy`."""
        self.leave()
        os.close(self._lock)

    def step_down(self) -> None:
        """Free the lock at once: for followers this leader is no more."""
        os.close(self._lock)

    def _say(self, state: State) -> None:
        self._state = state
        write_whole(self._place / STATE, msgspec.json.encode(state), durable=False)


class Follower:
    """Another local rank: waits for the leader's compilations and reads what it has published.

    Args:
        place: the meeting place.
        wait_s: longest wait for one graph that the leader compiles.
        not_compiling_s: longest wait for one that the leader has not begun.
        clock: monotonic seconds.
        pause: called between two looks.
    """

    def __init__(
        self,
        place: Path,
        *,
        wait_s: float,
        not_compiling_s: float = NOT_COMPILING_S,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place = place
        self._wait_s = wait_s
        self._not_compiling_s = not_compiling_s
        self._clock = clock
        self._pause = pause
        self._loaded = ""
        self._is_ours = False

    def wait_for(self, number: int) -> Wait:
        """Wait until the leader is through with its compilation `number`, from 0 on."""
        began_s = self._clock()
        while True:
            why_not = self._verdict(number, self._clock() - began_s)
            if why_not is not None:
                return Wait(self._clock() - began_s, why_not)
            self._pause(LOOK_S)

    def news(self) -> tuple[bytes, State] | None:
        """What the leader has published since the last call; None where that is nothing."""
        state = self.state()
        if not state.published or state.published == self._loaded:
            return None
        self._loaded = state.published
        try:
            data = (self._place / PUBLISHED).read_bytes()
        except FileNotFoundError:  # the leader has left
            return None
        return (data, state) if hashlib.sha256(data).hexdigest() == state.published else None

    def state(self) -> State:
        """How far the leader is."""
        if not self._trusts():
            return State()
        try:
            return _decoder.decode((self._place / STATE).read_bytes())
        except FileNotFoundError:
            return State()

    def _trusts(self) -> bool:
        """Whether the place is there, and only the user can have written to it."""
        if not self._is_ours and self._place.is_dir():
            self._is_ours = not why_untrusted(self._place)
        return self._is_ours

    def _verdict(self, number: int, waited_s: float) -> str | None:
        """Empty once the leader is through, why there is nothing to wait for, or None: wait on."""
        alive = self._trusts() and is_led(self._place)
        state = self.state()
        if state.done > number:
            return ""
        if state.over:
            return "local rank 0 is through with compiling and has other graphs"
        if not alive and state.begun:
            return "local rank 0 is no more"
        if alive and state.begun > number:
            return "local rank 0 took too long" if waited_s >= self._wait_s else None
        if waited_s < min(self._not_compiling_s, self._wait_s):
            return None
        return "local rank 0 has not come to this graph" if alive else "there is no local rank 0"


def is_led(place: Path) -> bool:
    """Whether a leader lives in a meeting place."""
    try:
        handle = os.open(place / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _tidy(place: Path) -> None:
    """Take away the meeting places of starts that are over."""
    for other in place.parent.glob(f"{PREFIX}{os.getuid()}-*"):
        with suppress(OSError):  # another start takes it away, or it is somebody else's
            if other != place and time.time() - other.stat().st_mtime > OLD_S and not is_led(other):
                shutil.rmtree(other, ignore_errors=True)
