"""`ett run`: run a training command under observation.

The launcher does the work; this reads the command line and prints.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from ett_cli.stall_options import add_stall_options, stall_settings
from ett_cli.token_file import add_token_file

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
READ_AT_END_BYTES = 100 << 20
"""Nobody waits at the end of a job until more than that is read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett run`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
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
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        type=_label,
        metavar="NAME=TEXT",
        help="describe the job: job_name, team, model, cluster, scheduler, ... (repeatable)",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="time that the command has to end once the job is stopped, before SIGKILL (default: 30)",
    )
    parser.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="N",
        help="start a command that failed again, at most so often (default: 0, never)",
    )
    parser.add_argument(
        "--restart-delay",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="wait before the first restart; twice as long before each further one (default: 5)",
    )
    parser.add_argument(
        "--restart-on",
        action="append",
        metavar="CAUSE",
        help="restart only after this: failed, oom, killed, crashed, preempted, a signal such as SIGSEGV, "
        "an exit code (repeatable, or with commas; default: failed, which is each of them)",
    )
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
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="what to run")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, or 2 where a setting is wrong."""
    from ett_trainer_hooks.guard import Guard
    from ett_trainer_hooks.identity import sanitised_job_id
    from ett_trainer_hooks.launcher import LaunchSettings, launch
    from ett_trainer_hooks.launcher.restarts import RestartPolicy

    occupy_standard_descriptors()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        return _complain("there is no command; write it after --", 2)
    given = arguments.job_id or os.environ.get("ETT_JOB_ID") or new_job_id(command, os.environ)
    job_id = sanitised_job_id(given)
    directory = arguments.journal_dir or default_journal_dir(job_id, os.environ)
    try:
        settings = LaunchSettings(
            command=command,
            job_id=job_id,
            journal_dir=directory,
            exporter_url=arguments.exporter or exporter_in(os.environ),
            token_file=arguments.token_file,
            labels=dict(arguments.label),
            stalls=stall_settings(arguments),
            drain_s=arguments.drain,
            grace_s=arguments.grace,
            restarts=RestartPolicy(
                max_restarts=arguments.max_restarts,
                delay_s=arguments.restart_delay,
                on=causes_in(arguments.restart_on or ["failed"]),
            ),
        )
        say = _say_nothing if arguments.quiet else _say
        if job_id != given:
            _say(f"job id {given!r} {what_is_wrong(given)}; the job is {job_id}")
        environ = with_auto(os.environ, arguments.auto)
        if (switch := environ.get("ETT_AUTO", "")) not in ("", "0", "1"):
            _say(f"ETT_AUTO={switch!r} is ignored: 0 switches automatic observation off")
        status = launch(settings, environ, say=say, meanwhile=lambda: Guard().call(prepare_last_sentences))
    except ValueError as error:
        return _complain(str(error), 2)
    except FileNotFoundError as error:
        return _complain(f"{error.filename}: {error.strerror}", NOT_FOUND)
    except OSError as error:
        return _complain(f"{error.filename or command[0]}: {error.strerror}", CANNOT_RUN)
    sentences = None if arguments.quiet else Guard().call(last_sentences, directory, job_id, time.time())
    for sentence in sentences or ():
        say(sentence)
    return status


def occupy_standard_descriptors() -> None:
    """See to it that no file of ours gets the number of a standard stream that is closed.

    The command finds it closed, as it would without us.
    """
    while (opened := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= STANDARD_ERROR:
        pass  # the lowest number that is free was given
    os.close(opened)


def exporter_in(environ: Mapping[str, str]) -> str | None:
    """The exporter that the environment names; one that cannot be understood is said and left out."""
    from ett_trainer_hooks.shipping.transport import exporter_address

    url = environ.get("ETT_EXPORTER_URL")
    try:
        return url if url and exporter_address(url) else None
    except ValueError as error:
        _say(f"ETT_EXPORTER_URL: {error}; events are kept on the disk only")
        return None


def with_auto(environ: Mapping[str, str], auto: bool | None) -> dict[str, str]:  # noqa: FBT001 - an answer
    """The environment with the answer that the command line gives, if it gives one.

    >>> with_auto({"ETT_AUTO": "0"}, None), with_auto({}, False)
    ({'ETT_AUTO': '0'}, {'ETT_AUTO': '0'})
    """
    return dict(environ) if auto is None else {**environ, "ETT_AUTO": str(int(auto))}


def new_job_id(command: list[str], environ: Mapping[str, str]) -> str:
    """A job id for a run that was not given one: that of the scheduler, else of the rendezvous, else new."""
    from ett_trainer_hooks.identity.who import job_id_from_env

    if known := job_id_from_env(environ) or rendezvous_id(command):
        return known
    return f"{Path(command[0]).name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def rendezvous_id(command: list[str]) -> str:
    """A job id from the `--rdzv-id` of a torchrun command on several nodes, which is the same on all of them.

    On one node it is left alone: the same number often stands in the commands of many jobs.

    >>> rendezvous_id(["torchrun", "--nnodes=2", "--rdzv-id", "dlrm-7", "train.py", "--rdzv-id=x"])
    'torchrun-dlrm-7'
    >>> rendezvous_id(["torchrun", "--rdzv-id=100", "train.py"])
    ''
    """
    run_id = _option(command, "--rdzv-id")
    if run_id in ("", "none") or _option(command, "--nnodes") in ("", "1", "1:1"):
        return ""
    return f"torchrun-{run_id}"


def _option(command: list[str], name: str) -> str:
    """What an option of torchrun is set to, in any of its spellings; nothing where it is not set."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option.replace("_", "-") == name:
            return value if equals else following
    return ""


def prepare_last_sentences() -> None:
    """Load what the last sentences need while the command runs, so that nobody waits for it at the end."""
    for module in ("ett_cli.journals", "ett_cli.recorded", "ett_cli.report"):
        importlib.import_module(module)


def last_sentences(directory: Path, job_id: str, now: float) -> list[str]:
    """How a job failed, if it did, and what took most of its time besides training; each with what to do.

    By the journals of this node.
    """
    from ett_cli.journals import collector_paused, read_journals
    from ett_cli.recorded import Recorded
    from ett_cli.report import end_of, largest_loss
    from ett_trainer_hooks.identity import sanitised_job_id

    if sum(path.stat().st_size for path in directory.glob("*.jsonl")) > READ_AT_END_BYTES:
        return [f"ett account {shlex.quote(str(directory))} tells where the time went"]
    job_id = sanitised_job_id(job_id)
    recorded = Recorded(job_id)
    with collector_paused():
        for part in read_journals([str(directory)]):
            recorded.add([event for event in part.events if event.job_id == job_id])
    job = recorded.as_json(now)
    if job is None:
        return []
    ended = end_of(job)
    more = f"{ended} More: ett account {shlex.quote(str(directory))}" if ended else ""
    return [sentence for sentence in (more, largest_loss(job["components"])) if sentence]


def what_is_wrong(job_id: str) -> str:
    """Why a job id cannot be used as it is.

    >>> what_is_wrong("bad id!")
    'holds characters that it may not'
    """
    from ett_trainer_hooks.identity.who import MAX_JOB_ID

    if len(job_id) > MAX_JOB_ID:
        return f"is longer than {MAX_JOB_ID} characters"
    return "holds characters that it may not"


def default_journal_dir(job_id: str, environ: Mapping[str, str]) -> Path:
    """Where journals go that were not given a place."""
    from ett_trainer_hooks.identity import sanitised_job_id

    if given := environ.get("ETT_JOURNAL_DIR"):
        return Path(given)
    state = environ.get("XDG_STATE_HOME")
    home = environ.get("HOME")
    root = Path(state) if state else Path(home, ".local/state") if home else Path(tempfile.gettempdir())
    return root / "ettwatch" / sanitised_job_id(job_id).replace("/", "_").lstrip(".")


def causes_in(given: list[str]) -> tuple[str, ...]:
    """The causes in what was given, one by one or with commas.

    >>> causes_in(["oom, SIGSEGV", "75"])
    ('oom', 'SIGSEGV', '75')
    """
    return tuple(cause.strip() for text in given for cause in text.split(","))


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=TEXT")
    return name, value


def _say(text: str) -> None:
    """Print a sentence; where the terminal is gone, nobody reads it, and the job goes on."""
    if sys.stderr is None:  # print would take standard output
        return
    try:
        print(f"ett run: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: in the midst of another sentence
        return


def _say_nothing(_text: str) -> None:
    return


def _complain(text: str, status: int) -> int:
    _say(text)
    return status
