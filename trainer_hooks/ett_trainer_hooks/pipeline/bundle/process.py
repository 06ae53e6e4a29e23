"""One process and its bundle: fetched before the ranks meet, loaded before it compiles, saved after.

Execution: `fetch` runs on any thread and asks the store, nothing else; `load` and `save` run on the
thread that trains, when nothing is compiled. What `save` must do slowly, it does on a daemon thread.
No method raises: what goes wrong is a use with its reason, and the job compiles for itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

from ett_core.waits import LONGEST_WAIT_S
from ett_trainer_hooks.pipeline.bundle import compiler
from ett_trainer_hooks.pipeline.bundle.compiler import Artifacts
from ett_trainer_hooks.pipeline.bundle.contents import Contents
from ett_trainer_hooks.pipeline.bundle.entry import Entry, RefusedError, content_name
from ett_trainer_hooks.pipeline.bundle.eviction import evict
from ett_trainer_hooks.pipeline.bundle.fingerprint import environment
from ett_trainer_hooks.pipeline.bundle.native import native_files, native_names
from ett_trainer_hooks.pipeline.bundle.settings import BundleSettings, compiler_settings, prepare_compiler
from ett_trainer_hooks.pipeline.bundle.store import BundleStore, StoreFailedError
from ett_trainer_hooks.pipeline.bundle.usage import Use, gain_of, tell_gain, tell_use
from ett_trainer_hooks.recording.recorder import Recorder

NOT_ASKED = Use(outcome="bypass", why="nobody asked the store")


class ProcessBundle:
    """The bundle of this process. Made before torch is imported: it tells the compiler how to name its code.

    Args:
        settings: the store and the name.
        recorder: whom to tell.
        environ: the variables of this process; those that the compiler needs are added.
        facts: the environment, asked on the thread that fetches.
    """

    def __init__(
        self,
        settings: BundleSettings,
        recorder: Recorder,
        *,
        environ: MutableMapping[str, str] = os.environ,
        facts: Callable[[], Mapping[str, str]] = environment,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._environ = environ
        self._ask_facts = facts
        self._facts: Mapping[str, str] = {}
        self._store: BundleStore | None = None
        self._fetched: tuple[Entry, Contents] | None = None
        self._known: set[tuple[str, str]] = set()
        self._kept_native: set[str] = set()
        self._saving: threading.Thread | None = None
        self._told_gain = False
        self._asked_s = 0.0
        self.cache_dir: Path = prepare_compiler(environ)
        self.use: Use = NOT_ASKED
        """How this start fared."""

    @property
    def local_rank(self) -> int:
        """The rank on this node."""
        return compiler.number(self._environ, "LOCAL_RANK")

    @property
    def rank(self) -> int:
        """The global rank."""
        return compiler.number(self._environ, "RANK")

    def fetch(self) -> None:
        """Ask the store for the bundle of this rank. From any thread."""
        began_s = time.monotonic()
        self.use = self._recorder.guard.call(self._fetch) or NOT_ASKED
        self._asked_s = time.monotonic() - began_s

    def load(self) -> Use:
        """Put what was fetched where the compiler looks, and say how this start fared. Imports torch."""
        began_s = time.monotonic()
        if self._fetched is not None:
            self.use = self._recorder.guard.call(self._install, *self._fetched) or NOT_ASKED
            self._fetched = None
        load_s = self._asked_s + time.monotonic() - began_s
        self.use = Use(outcome=self.use.outcome, why=self.use.why, entry=self.use.entry, load_s=load_s)
        tell_use(self._recorder, self.use)
        return self.use

    def save(self) -> None:
        """The first steps, or the last, are done: keep what is not in the store yet. Returns at once."""
        self._recorder.guard.call(self._save)

    def close(self) -> None:
        """Save what is new, and wait until it is kept: at most twice as long as for an answer of a store."""
        self._await_save()
        self.save()
        self._await_save()

    def know(self, keys: Mapping[str, list[str]]) -> None:
        """Artifacts of these keys came from elsewhere: they are no reason to save."""
        self._known |= self._reasons(keys, self.rank)

    def _await_save(self) -> None:
        if self._saving is not None:
            self._saving.join(min(self._settings.patience_s, LONGEST_WAIT_S))

    def _fetch(self) -> Use:
        try:
            self._store = BundleStore(
                self._settings.address,
                key=self._settings.key(self._environ),
                patience_s=self._settings.patience_s,
            )
            self._facts = self._ask_facts()
            entry = self._store.find(self._settings.name, self._facts, self.local_rank)
            self._fetched = (entry, self._store.contents(entry))
        except RefusedError as reason:
            return Use(outcome="miss", why=str(reason))
        except (StoreFailedError, ValueError) as reason:
            return Use(outcome="bypass", why=str(reason))
        return Use(outcome="hit", why="", entry=entry)

    def _install(self, entry: Entry, contents: Contents) -> Use:
        try:
            profiles = entry.artifacts.get(compiler.PGO, ())
            compiler.install(contents, profiles, entry.rank, self.cache_dir, self.rank)
        except RefusedError as reason:
            return Use(outcome="miss", why=str(reason))
        except OSError as error:
            return Use(outcome="bypass", why=f"{self.cache_dir} cannot be written ({error})")
        self._known |= self._reasons(entry.artifacts, entry.rank)
        self._note_use(entry)
        return Use(outcome="hit", why="", entry=entry)

    def _note_use(self, entry: Entry) -> None:
        """Let the store know, on a thread of its own; one that cannot be written to need not."""
        store = self._store
        assert store is not None  # noqa: S101 - for the type checker

        def note() -> None:
            with suppress(StoreFailedError):
                store.note_use(entry)

        threading.Thread(target=note, name="bundle use", daemon=True).start()

    def _save(self) -> None:
        if not self._told_gain:
            self._told_gain = True
            tell_gain(self._recorder, self.use, gain_of(self.use, compiler.spent_s(), compiler.native_s()))
        if self._store is None or (self._saving is not None and self._saving.is_alive()):
            return
        artifacts = compiler.compiled()
        if artifacts is None or not self._is_new(artifacts):
            return
        self._known |= self._reasons(artifacts.keys, self.rank)
        earlier_s = 0.0 if self.use.entry is None else self.use.entry.compile_s
        compile_s = earlier_s + compiler.spent_s()
        arguments = (self._keep, self._store, artifacts, compile_s)
        self._saving = threading.Thread(
            target=self._recorder.guard.call, args=arguments, name="bundle save", daemon=True
        )
        self._saving.start()

    def _is_new(self, artifacts: Artifacts) -> bool:
        """Whether this process has compiled what the store lacks: a graph, or code of one that it found."""
        if not self._reasons(artifacts.keys, self.rank) <= self._known:
            return True
        entry = self.use.entry
        return entry is not None and not set(native_names(self.cache_dir)) <= {
            *entry.native,
            *self._kept_native,
        }

    def _reasons(self, keys: Mapping[str, list[str]], rank: int) -> set[tuple[str, str]]:
        """What of these artifacts, seen by `rank`, is worth a bundle, by kind and key.

        Not the sizes that this rank has seen, where it takes over those of local rank 0.
        """
        shared = compiler.without_rank(keys, rank)
        pairs = {(kind, key) for kind, some in shared.items() for key in some}
        leads = self.local_rank == (0 if self.use.entry is None else self.use.entry.local_rank)
        return pairs if leads else {pair for pair in pairs if pair[0] != compiler.PGO}

    def _keep(self, store: BundleStore, artifacts: Artifacts, compile_s: float) -> None:
        try:
            native = native_files(self.cache_dir)
            self._kept_native = set(native)
            contents = Contents(artifacts.whole(), native)
            entry = store.put(self._entry(store, artifacts, contents, compile_s), contents)
            store.remove_partial()
            if sum(store.objects().values()) > self._settings.limit_bytes:
                evict(store, self._settings.limit_bytes)
        except (StoreFailedError, OSError) as error:
            self._recorder.decision("bundle not kept", str(error))
            return
        self._recorder.decision(
            "bundle kept",
            f"{entry.graphs} graphs and {len(native)} native files of {entry.name!r} in {store.address}",
            {"bytes": float(entry.size), "compile_s": compile_s},
        )

    def _entry(self, store: BundleStore, artifacts: Artifacts, contents: Contents, compile_s: float) -> Entry:
        return Entry(
            name=self._settings.name,
            local_rank=self.local_rank,
            rank=self.rank,
            job_id=self._recorder.identity.job_id,
            made_at=store.now(),
            facts=dict(self._facts),
            settings=compiler_settings(self._environ),
            compile_s=compile_s,
            artifacts={kind: list(keys) for kind, keys in artifacts.keys.items()},
            native=sorted(contents.native),
            content=content_name(compiler.without_rank(artifacts.keys, self.rank), contents.hashes()),
            sha256="",
            size=0,
        )
