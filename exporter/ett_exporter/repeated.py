"""Work that an exporter does again and again beside answering, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from ett_exporter.errors import StoreError

_log = logging.getLogger("ett_exporter.repeated")


class Repeated:
    """Calls `work` in a thread, `every_s` seconds apart; without a pause while it returns True.

    From `start` to `stop`, or for as long as a `with` lasts. What fails is tried again; a store that is
    away is logged once, and once more when it works.
    """

    def __init__(self, name: str, work: Callable[[], bool | None], every_s: float) -> None:
        self._name = name
        self._work = work
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ett-{name}", daemon=True)
        self._fails = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the call that is on."""
        self._stopped.set()
        self._thread.join()

    def __enter__(self) -> Repeated:  # noqa: PYI034 - Self is younger than Python 3.10
        """Begin."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, after the call that is on."""
        self.stop()

    def goes_on(self) -> bool:
        """Whether nobody asked it to stop, for work that takes long."""
        return not self._stopped.is_set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if not self._try():
                self._stopped.wait(self._every_s)

    def _try(self) -> bool:
        try:
            has_more = self._work()
        except StoreError as error:
            self._note_failure(str(error))
            return False
        except Exception:  # noqa: BLE001 - the thread lives as long as the exporter
            _log.exception("%s failed; it is tried again", self._name)
            return False
        if self._fails:
            self._fails = False
            _log.warning("%s works again", self._name)
        return bool(has_more)

    def _note_failure(self, said: str) -> None:
        if not self._fails:
            self._fails = True
            _log.warning("%s waits: %s", self._name, said)
