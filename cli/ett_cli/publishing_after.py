"""Publishing what a trainer has handed over, once it has left: here, or in a process that outlives us.

The trainer's job has ended by then, and its time with it; the publishing is a job of its own.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli.itself import ett

if TYPE_CHECKING:
    from ett_cli.publishing import Order
    from ett_trainer_hooks.pipeline.publishing.handover import HandOver

LOG = "publish.log"
"""Where a process that outlives us says how it goes, beside the trainer's events."""


@dataclass(frozen=True)
class Later:
    """What a process that outlives us publishes (as `ett publish` takes it), and where its log goes."""

    checkpoints: Path
    place: Path


def add_publishing_options(parser: argparse.ArgumentParser) -> None:
    """Declare what is the same for all commands that publish after a trainer."""
    parser.add_argument(
        "--publish-later",
        action="store_true",
        help="do not wait for the publishing: it goes on in a process that outlives this one",
    )


def order_of(address: str, arguments: argparse.Namespace, environ: Mapping[str, str]) -> Order:
    """How to publish to a place, as the options of a launcher say, which tells of a wrong exporter.

    Raises:
        ValueError: nobody knows the place.
    """
    from ett_cli.commands.run import exporter
    from ett_cli.publishing import Order
    from ett_core.purposes import handed_on
    from ett_trainer_hooks.pipeline.checkpoint.asking import RemoteError
    from ett_trainer_hooks.pipeline.publishing.places import place_at

    try:
        place_at(address).close()
    except RemoteError as error:
        raise ValueError(str(error)) from error
    return Order(
        address=address,
        exporter_url=exporter(arguments.exporter, arguments.token_file, environ, lambda _: None),
        token_file=arguments.token_file,
        journal_dir=arguments.journal_dir,
        labels=handed_on(dict(arguments.label)),
    )


def still_open(found: Sequence[HandOver]) -> list[HandOver]:
    """Those that wait to be published or are being published; else the newest one, whatever became of it."""
    return [each for each in found if each.state() in {"pending", "taken"}] or list(found[:1])


def publish_after(
    found: Sequence[HandOver],
    order: Order,
    environ: Mapping[str, str],
    say: Callable[[str], object],
    *,
    later: Later | None = None,
) -> int:
    """Publish hand-overs, or have it done later.

    Returns 1 where something is not published, or nothing was handed over.

    Raises:
        ValueError: a setting is wrong.
        OSError: a process cannot be started, or the disk cannot be asked.
    """
    from ett_cli.publishing import as_json, publish_all, sentences

    if not found:
        say("nothing was handed over to be published")
        return 1
    if later is not None:
        pid = _started(later, order, environ)
        say(f"{later.checkpoints} is published by process {pid}, which writes to {later.place / LOG}")
        return 0
    publish_all(found, order, environ, say)
    for sentence in sentences([as_json(each) for each in found]):
        say(sentence)
    return 0 if all(each.state() == "done" for each in found) else 1


def _started(later: Later, order: Order, environ: Mapping[str, str]) -> int:
    """A process in a session of its own that publishes; its number."""
    more = {
        "--exporter": order.exporter_url,
        "--token-file": order.token_file,
        "--journal-dir": order.journal_dir,
    }
    words = [word for name, value in more.items() if value is not None for word in (name, str(value))]
    words += [word for name, text in order.labels.items() for word in ("--label", f"{name}={text}")]
    later.place.mkdir(parents=True, exist_ok=True)
    with (later.place / LOG).open("ab") as log:
        return subprocess.Popen(
            ett("publish", str(later.checkpoints), "--to", order.address, *words),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ).pid
