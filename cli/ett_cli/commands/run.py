"""`ett run`: run a training command under observation.

The launcher does the work; this reads the command line and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli.job_settings import GRACE_S, default_journal_dir, new_job_id, what_is_wrong
from ett_cli.label_option import add_label
from ett_cli.last_sentences import last_sentences, prepare_last_sentences
from ett_cli.publishing_after import Later, add_publishing_options, order_of, publish_after, still_open
from ett_cli.restart_options import add_restart_options, restart_policy
from ett_cli.saying import complain, say
from ett_cli.stall_options import add_stall_options, stall_settings
from ett_cli.token_file import add_token_file

if TYPE_CHECKING:
    from ett_cli.publishing import Order

EPILOG = """\
The command's output passes through, its exit status is returned (128 + n where signal n ended
it). Recorders in the command find the job by ETT_JOB_ID and ETT_JOURNAL_DIR; programs without a
recorder are observed through public seams of torch, other programs are left alone. Killing this
launcher does not stop the command. At the end one sentence says what took most of the time and what
to do about it.
"""
CANNOT_RUN = 126
NOT_FOUND = 127
STANDARD_ERROR = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett run`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_launch_options(parser)
    parser.add_argument(
        "--parts",
        default="",
        metavar="NAMES",
        help="parts of the optimised pipeline that need no change to the program: pgo, dynamic_sources",
    )
    parser.add_argument(
        "--standby",
        action="store_true",
        help="keep a process a local rank that has prepared its next start, for programs that ask for it",
    )
    parser.add_argument(
        "--publish-to",
        metavar="PLACE",
        help="publish what the command has handed over, once it has ended well (docs/model-publishing.md)",
    )
    parser.add_argument(
        "--publish-from",
        type=Path,
        metavar="DIR",
        help="with --publish-to: the command's directory of checkpoints",
    )
    add_publishing_options(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="what to run")


def add_launch_options(
    parser: argparse.ArgumentParser, *, grace_s: float | None = GRACE_S, otherwise: str = ""
) -> None:
    """Declare how a command is observed, whichever it is.

    `grace_s`: the default; `otherwise` says when it is not what the help says.
    """
    parser.add_argument(
        "--job-id",
        help="the logical run, the same across restarts and nodes (default: that of its scheduler, else new)",
    )
    parser.add_argument(
        "--exporter",
        metavar="URL",
        help="ship events there (default: $ETT_EXPORTER_URL, else nowhere)",
    )
    add_token_file(parser)
    parser.add_argument(
        "--journal-dir",
        type=Path,
        metavar="DIR",
        help="where events and output go (default: $ETT_JOURNAL_DIR, else in the user's state)",
    )
    add_label(parser)
    parser.add_argument(
        "--grace",
        type=float,
        default=grace_s,
        metavar="SECONDS",
        help="time that the command has to end once the job is stopped, before SIGKILL "
        f"(default: {GRACE_S:g}{otherwise})",
    )
    add_restart_options(parser)
    parser.add_argument(
        "--drain",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="go on shipping after the end while the exporter takes events (default: 5)",
    )
    parser.add_argument(
        "--auto",
        action=argparse.BooleanOptionalAction,
        help="observe programs that have no recorder, through public seams of torch "
        "(default: yes, or as ETT_AUTO=1 or 0 says)",
    )
    add_stall_options(parser)
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but the command's output and errors"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, or 2 where a setting is wrong."""
    occupy_standard_descriptors()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not any(command[:1]):
        return complain("run", "there is no command; write it after --", 2)
    job_id = arguments.job_id or os.environ.get("ETT_JOB_ID") or new_job_id(command, os.environ)
    if bool(arguments.publish_to) != bool(arguments.publish_from):
        return complain("run", "--publish-to and --publish-from need each other", 2)
    try:
        order = order_of(arguments.publish_to, arguments, os.environ) if arguments.publish_to else None
    except ValueError as error:
        return complain("run", f"--publish-to: {error}", 2)
    status = run_under_observation(
        command,
        arguments,
        job_id=job_id,
        environ=os.environ,
        parts=arguments.parts,
        standby=arguments.standby,
    )
    return status if status or order is None else _published(order, arguments, job_id)


def _published(order: Order, arguments: argparse.Namespace, job_id: str) -> int:
    """Publish what the command has handed over, on the first node; 1 where that is not possible."""
    from ett_cli.publishing import found_in
    from ett_trainer_hooks.identity import is_first_node

    journals = arguments.journal_dir or default_journal_dir(job_id, os.environ)
    try:
        if not is_first_node(os.environ):
            return 0
        handed_over = still_open(found_in(arguments.publish_from))
        later = Later(arguments.publish_from, journals) if arguments.publish_later else None
        return publish_after(handed_over, order, os.environ, partial(say, "run"), later=later)
    except (OSError, ValueError) as error:
        return complain("run", f"not published: {error}", 1)


def run_under_observation(  # noqa: PLR0913 - what the two commands have apart
    command: list[str],
    arguments: argparse.Namespace,
    *,
    job_id: str,
    environ: Mapping[str, str],
    parts: str = "",
    standby: bool = False,
    name: str = "run",
) -> int:
    """Run a command as the options of `add_launch_options` say; returns what `run` does.

    `parts`: of the optimised pipeline, those that the launcher uses for the command.
    `standby`: whether it keeps a process for the next start of each rank.
    `name`: of the command of `ett` that speaks.

    Standard descriptors are occupied before (`occupy_standard_descriptors`).
    """
    from ett_trainer_hooks.guard import Guard
    from ett_trainer_hooks.identity import sanitised_job_id
    from ett_trainer_hooks.launcher import LaunchSettings, launch
    from ett_trainer_hooks.pipeline.parts import parse

    given, job_id = job_id, sanitised_job_id(job_id)
    directory = arguments.journal_dir or default_journal_dir(job_id, environ)
    places: list[Path] = []
    complaints = partial(say, name)
    try:
        settings = LaunchSettings(
            command=command,
            job_id=job_id,
            journal_dir=directory,
            exporter_url=exporter(arguments.exporter, arguments.token_file, environ, complaints),
            token_file=arguments.token_file,
            labels=dict(arguments.label),
            stalls=stall_settings(arguments),
            drain_s=arguments.drain,
            grace_s=arguments.grace,
            restarts=restart_policy(arguments),
            parts=parse(parts),
            standby=standby,
        )
        tell = _say_nothing if arguments.quiet else complaints
        if job_id != given:
            say(name, f"job id {given!r} {what_is_wrong(given)}; the job is {job_id}")
        environ = with_auto(environ, arguments.auto)
        if (switch := environ.get("ETT_AUTO", "")) not in ("", "0", "1"):
            say(name, f"ETT_AUTO={switch!r} is ignored: 0 switches automatic observation off")
        status = launch(
            settings,
            environ,
            say=tell,
            meanwhile=lambda: Guard().call(prepare_last_sentences),
            found_place=places.append,
        )
    except ValueError as error:
        return complain(name, error, 2)
    except FileNotFoundError as error:
        return complain(name, f"{error.filename}: {error.strerror}", NOT_FOUND)
    except OSError as error:
        return complain(name, f"{error.filename or command[0]}: {error.strerror}", CANNOT_RUN)
    place = (places or [directory])[-1]
    sentences = None if arguments.quiet else Guard().call(last_sentences, place, job_id, time.time())
    for sentence in sentences or ():
        tell(sentence)
    return status


def occupy_standard_descriptors() -> None:
    """See to it that no file of ours gets the number of a standard stream that is closed.

    The command finds it closed, as it would without us.
    """
    while (opened := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= STANDARD_ERROR:
        pass  # the lowest number that is free was given
    os.close(opened)


def exporter(
    given: str | None, token_file: Path | None, environ: Mapping[str, str], tell: Callable[[str], object]
) -> str | None:
    """The exporter to ship to: the one given, else that of the environment.

    What the environment says of it and cannot be understood is told by `tell`; nothing is shipped then.
    """
    from ett_core.credentials import token_source
    from ett_trainer_hooks.shipping.transport import exporter_address

    url = given or environ.get("ETT_EXPORTER_URL") or None
    told_by = "ETT_EXPORTER_URL"
    try:
        if url and not given:
            exporter_address(url)
        told_by = "ETT_EXPORTER_TOKEN, ETT_EXPORTER_TOKEN_FILE"
        if url and token_file is None:
            token_source(environ=environ)
    except ValueError as error:
        tell(f"{told_by}: {error}; events are kept on the disk only")
        return None
    return url


def with_auto(environ: Mapping[str, str], auto: bool | None) -> dict[str, str]:  # noqa: FBT001 - an answer
    """The environment with the answer that the command line gives, if it gives one.

    >>> with_auto({"ETT_AUTO": "0"}, None), with_auto({}, False)
    ({'ETT_AUTO': '0'}, {'ETT_AUTO': '0'})
    """
    return dict(environ) if auto is None else {**environ, "ETT_AUTO": str(int(auto))}


def _say_nothing(_text: str) -> None:
    return
