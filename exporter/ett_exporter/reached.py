"""How far watched journals were read: in memory at once, in the store some hundred at a time.

After a crash what was not written there yet is read again, and counts once. Any thread may call.
"""

from __future__ import annotations

import threading
from collections.abc import Container

from ett_core.plain_text import name_as_text
from ett_exporter.errors import StoreError
from ett_exporter.journal_files import is_packed
from ett_exporter.store import JournalOffset, Store

WRITTEN_TOGETHER = 256


class Reached:
    """The place in each journal from which it is read on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[str, JournalOffset] = {}
        self._unwritten: dict[str, JournalOffset] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def of(self, path: str) -> JournalOffset | None:
        """Where a journal is read on; None: from its beginning, as a packed one that has changed."""
        with self._lock:
            known = self._places.get(path)
        if known is None:
            return self._store.journal_offset(name_as_text(path))
        return None if is_packed(path) else known

    def note(self, path: str, place: JournalOffset) -> None:
        """A journal has been read so far.

        Raises:
            StoreError: it cannot be written to the store; the next `write` tries again.
        """
        with self._lock:
            self._places[path] = self._unwritten[path] = place
            is_much = len(self._unwritten) >= WRITTEN_TOGETHER
        if is_much:
            self.write()

    def write(self) -> None:
        """Have the store remember all of it, nothing older after what is newer; errors as `note`."""
        with self._writing:
            with self._lock:
                written, self._unwritten = self._unwritten, {}
            if not written:
                return
            try:
                self._store.set_journal_offsets({name_as_text(path): at for path, at in written.items()})
            except StoreError:
                with self._lock:
                    self._unwritten = written | self._unwritten
                raise

    def keep_only(self, paths: Container[str]) -> None:
        """Forget journals that are gone; the store does not."""
        with self._lock:
            self._places = {path: at for path, at in self._places.items() if path in paths}
