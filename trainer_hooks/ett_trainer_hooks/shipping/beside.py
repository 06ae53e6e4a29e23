"""Shipping of a directory of journals beside something else, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ett_core.credentials import token_source
from ett_trainer_hooks.shipping.shipper import Shipper
from ett_trainer_hooks.shipping.transport import exporter_address, poster

UNANSWERED_WAIT_S = 0.05
FIRST_ANSWER_S = 1.0


@contextmanager
def shipping(
    directory: Path,
    exporter_url: str | None,
    drain_s: float,
    say: Callable[[str], object],
    token_file: Path | None = None,
) -> Iterator[None]:
    """Ship the journals meanwhile, and what is left for at most `drain_s` seconds after it.

    Without an exporter nothing is shipped. Nobody waits for one that does not answer; `say` is told
    what is left, and how to send it. `token_file` holds the exporter's token, if not the environment.
    """
    if exporter_url is None:
        yield
        return
    post = poster(exporter_url, token=token_source(token_file))
    exporter = exporter_address(exporter_url)
    shipper = Shipper(directory, post, exporter)
    stop = threading.Event()
    thread = threading.Thread(
        target=lambda: shipper.run(stop, drain_s, awaits=False), name="ett-shipper", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        if shipper.is_answered is None:
            thread.join(timeout=FIRST_ANSWER_S)
        thread.join(timeout=drain_s + 1.0 if shipper.is_answered else UNANSWERED_WAIT_S)
        if left := shipper.unsent_bytes():
            say(
                f"{left} bytes of events are not shipped yet "
                f"(the last answer: {shipper.tally.last_answer}); send them with: "
                f"ett ship {directory} --exporter {exporter} --once"
            )
