"""The compilations of this process tied to the relay of its node.

Execution: torch calls around every compilation, on the thread that compiles, which may be a side
thread or one of autograd's. A follower waits and loads before its compilation, the leader
publishes after its own. Nothing here raises into a compilation.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.after_import import AfterImport
from ett_trainer_hooks.pipeline.bundle import compiler
from ett_trainer_hooks.pipeline.bundle.compiler import Artifacts
from ett_trainer_hooks.pipeline.bundle.contents import Contents, opened, packed
from ett_trainer_hooks.pipeline.bundle.entry import RefusedError
from ett_trainer_hooks.pipeline.bundle.native import native_files
from ett_trainer_hooks.pipeline.bundle.relay import NOT_COMPILING_S, Follower, Leader, meeting_place
from ett_trainer_hooks.recording.compiling import track_of_this_thread
from ett_trainer_hooks.recording.recorder import Recorder

WHAT = "one compile a node"
LEADER_WAIT_S = 900.0
"""Longest time that a rank waits for one graph that local rank 0, alive, is compiling."""


def forget(_: Mapping[str, list[str]]) -> None:
    """Nobody wants to know."""


class _Depth(threading.local):
    depth = 0


class SharedCompiles:
    """Local rank 0 compiles for its node. Off for a rank that is alone.

    Args:
        recorder: whom to tell.
        cache_dir: where the compiler of this process keeps its code, see `prepare_compiler`.
        wait_s: longest wait for one graph that local rank 0 compiles.
        absent_s: longest wait for local rank 0 to come to a graph.
        environ: the variables of this process.
        place: where the ranks of the node meet.
        know: told the keys of artifacts that came from local rank 0, by kind.
    """

    def __init__(  # noqa: PLR0913 - what a rank is told
        self,
        recorder: Recorder,
        *,
        cache_dir: Path,
        wait_s: float = LEADER_WAIT_S,
        absent_s: float = NOT_COMPILING_S,
        environ: Mapping[str, str] = os.environ,
        place: Path | None = None,
        know: Callable[[Mapping[str, list[str]]], None] = forget,
    ) -> None:
        self._recorder = recorder
        self._cache_dir = cache_dir
        self._wait_s, self._absent_s = wait_s, absent_s
        self._know = know
        self._rank = compiler.number(environ, "RANK")
        self._local_rank = compiler.number(environ, "LOCAL_RANK")
        self._alone = compiler.number(environ, "LOCAL_WORLD_SIZE", 1) < 2  # noqa: PLR2004 - one rank
        self._place = place or meeting_place(environ)
        self._leader: Leader | None = None
        self._follower: Follower | None = None
        self._training = threading.get_ident()
        self._here = _Depth()
        self._turn = threading.Lock()
        self._seen = 0
        self._published: set[tuple[str, str]] = set()
        self._waited_s = 0.0
        self._missed_before = 0

    @property
    def follows(self) -> bool:
        """Whether another rank of the node compiles for this one."""
        return not self._alone and self._local_rank > 0

    def begin(self, *, has_bundle: bool = False) -> None:
        """From now on; made on the thread that trains. A rank that has its bundle waits for nobody."""
        self._recorder.guard.call(self._begin, has_bundle)

    def over(self) -> None:
        """The first steps are done: what is compiled later, each rank compiles for itself."""
        self._recorder.guard.call(self._over)

    def close(self) -> None:
        """The training is over."""
        self._recorder.guard.call(self._close)

    def _begin(self, has_bundle: bool) -> None:  # noqa: FBT001 - of `begin` only
        if self._alone:
            return
        try:
            if self._local_rank == 0:
                self._leader = Leader(self._place, self._rank)
            elif not has_bundle:
                self._follower = Follower(self._place, wait_s=self._wait_s, not_compiling_s=self._absent_s)
        except OSError as error:
            self._recorder.decision(WHAT, f"off: {error}")
            return
        AfterImport({torch_private.COMPILER: self._attach})

    def _attach(self, _: object) -> None:
        guard = self._recorder.guard
        torch_private.follow_compilations(
            lambda _: guard.call(self._compilation_begins), lambda _: guard.call(self._compilation_ended)
        )

    def _compilation_begins(self) -> None:
        self._here.depth += 1
        if self._here.depth > 1:
            return
        if self._leader is not None:
            self._lead(self._leader.begin)
        elif self._follower is not None:
            self._follow(self._follower)

    def _compilation_ended(self) -> None:
        self._here.depth -= 1
        if self._here.depth:
            return
        if (leader := self._leader) is not None:
            self._lead(lambda: self._publish(leader))
        elif self._follower is not None:
            self._look_back()

    def _lead(self, act: Callable[[], None]) -> None:
        """One act of the leader; if the meeting place fails it steps down, so that nobody waits for it."""
        with self._turn:
            leader = self._leader
            if leader is None:
                return
            try:
                act()
            except OSError as error:
                self._leader = None
                leader.step_down()
                self._recorder.decision(WHAT, f"off: {error}")

    def _follow(self, follower: Follower) -> None:
        with self._turn:
            number, self._seen = self._seen, self._seen + 1
            with self._recorder.phase("compile", track=track_of_this_thread(self._training)):
                wait = follower.wait_for(number)
                self._load(follower)
            self._waited_s += wait.waited_s
            self._missed_before = compiler.graphs_missed()
            if wait.why_not:
                self._follower = None
                self._recorder.decision(WHAT, f"this rank compiles for itself: {wait.why_not}")

    def _load(self, follower: Follower) -> None:
        news = follower.news()
        if news is None:
            return
        data, state = news
        profiles = state.keys.get(compiler.PGO, ())
        try:
            compiler.install(opened(data), profiles, state.rank, self._cache_dir, self._rank)
        except (RefusedError, OSError) as error:
            self._recorder.decision(WHAT, f"what local rank 0 has compiled cannot be loaded: {error}")
            return
        self._know(state.keys)

    def _look_back(self) -> None:
        """Wait no more where this rank had to compile in spite of the wait: its graphs are others."""
        if compiler.graphs_missed() > self._missed_before:
            self._follower = None
            why = "its graphs are others than those of local rank 0"
            self._recorder.decision(WHAT, f"this rank compiles for itself: {why}")

    def _publish(self, leader: Leader) -> None:
        artifacts = compiler.compiled()
        if artifacts is not None and not _pairs(artifacts) <= self._published:
            self._published = _pairs(artifacts)
            archive = packed(Contents(artifacts.whole(), native_files(self._cache_dir)))
            leader.publish(archive, artifacts.keys)
        leader.end()

    def _over(self) -> None:
        if self._leader is not None:
            self._lead(self._leader.leave)
        if self._waited_s:
            values = {"waited_s": self._waited_s, "compilations": float(self._seen)}
            self._recorder.decision(WHAT, f"waited {self._waited_s:.1f} s for local rank 0", values)
            self._waited_s = 0.0
        self._follower = None

    def _close(self) -> None:
        self._over()
        if self._leader is not None:
            self._lead(self._leader.close)
            self._leader = None


def _pairs(artifacts: Artifacts) -> set[tuple[str, str]]:
    return {(kind, key) for kind, keys in artifacts.keys.items() for key in keys}
