"""`ett train`: train the reference model with every part of the optimised pipeline, under observation.

What is trained stands in a file and on the command line; the launcher of `ett run` starts it.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from ett_cli.commands.run import (
    add_launch_options,
    occupy_standard_descriptors,
    run_under_observation,
)
from ett_cli.job_settings import default_journal_dir, new_job_id
from ett_cli.publishing_after import Later, add_publishing_options, order_of, publish_after
from ett_cli.saying import complain, lacking, say
from ett_core.reasons import reason_within

if TYPE_CHECKING:
    from ett_cli.training.config import Config
    from ett_trainer_hooks.reference.settings import Settings

EPILOG = """\
Options go before the file, the file before the defaults; all parts are on unless told otherwise. A job
that is started again under its --job-id goes on from its newest checkpoint. Exit status: that of torchrun,
1 where it cannot train here (checkpoints, another start, torch), 2 where a setting is wrong.
"""
NEEDED = ("torch", "torchrec")
USUAL_BACKENDS = ("inductor", "aot_eager", "eager")
"""Of torch.compile."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett train`."""
    from ett_trainer_hooks.reference.settings import declare

    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--config", type=Path, metavar="FILE", help="what to train, in TOML")
    parser.add_argument(
        "--print-config", action="store_true", help="print the configuration that results, and train nothing"
    )
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--plain", action="store_true", help="without any part of the optimised pipeline")
    parts.add_argument("--parts", metavar="NAMES", help="with these parts only: a,b or all,-a")
    parser.add_argument("--ranks", type=int, metavar="N", help="processes that train together (default: 2)")
    parser.add_argument(
        "--rank-restarts",
        type=int,
        metavar="N",
        help="how often torchrun starts the ranks again after a failure (default: 3)",
    )
    parser.add_argument(
        "--run-dir", metavar="DIR", help="where checkpoints and caches go by default (default: runs)"
    )
    trainer = parser.add_argument_group("trainer", "Settings of the trainer (docs/train.md)")
    places = {"checkpoint_dir": "JOB/checkpoints in --run-dir", "cache": "cache in --run-dir"}
    declare(trainer, but=("parts",), otherwise=places)
    add_publishing_options(parser)
    add_launch_options(parser, grace_s=None, otherwise=", or 5 more than --grace-s")


def run(arguments: argparse.Namespace) -> int:
    """Train; returns the exit status."""
    from ett_cli.training.attempts import told_attempt
    from ett_cli.training.command import environment, launcher_grace_s, torchrun
    from ett_cli.training.config import written
    from ett_trainer_hooks.identity import sanitised_job_id

    occupy_standard_descriptors()
    environ = os.environ
    job_id = arguments.job_id or environ.get("ETT_JOB_ID") or new_job_id(["dlrm"], environ)
    try:
        config = _config(arguments)
        settings = config.settings(job_id)
        _check_addresses(settings)
        arguments.grace = launcher_grace_s(settings, arguments.grace)
    except OSError as error:
        return complain("train", f"{error.filename}: {error.strerror}", 2)
    except ValueError as error:
        return complain("train", error, 2)
    if arguments.print_config:
        print(written(config, job_id), end="")
        return 0
    journals = arguments.journal_dir or default_journal_dir(job_id, environ)
    attempt = told_attempt(sanitised_job_id(job_id), journals, environ)
    if hindrance := _hindrance(settings, by_hand=bool(attempt)):
        return complain("train", hindrance, 1)
    command = torchrun(settings, job_id=job_id, ranks=config.ranks, restarts=config.rank_restarts)
    status = run_under_observation(
        command,
        arguments,
        job_id=job_id,
        environ={**environment(config.ranks, arguments.grace), **environ, **attempt},
        standby=settings.uses("standby"),
        name="train",
    )
    if status or not (settings.publish_to and settings.uses("standalone_publishing")):
        return status
    return _published(settings, arguments, journals)


def _hindrance(settings: Settings, *, by_hand: bool) -> str:
    """What keeps this start from training here, though its settings are right; empty where nothing does.

    `by_hand`: no scheduler has ended the start before, so that its ranks may train on elsewhere; those of a
    later start would take over from them.
    """
    from ett_trainer_hooks.pipeline.checkpoint.sole_writer import (
        OccupiedError,
        writer_elsewhere,
        writer_here,
    )

    if missing := [name for name in NEEDED if not find_spec(name)]:
        return lacking(missing)
    writer = writer_here(settings.saves_to)
    if writer is None and by_hand:
        writer = writer_elsewhere(settings.saves_to)
    if writer is not None:
        return str(OccupiedError(settings.saves_to, writer))
    return _unwritable(settings.saves_to) or _unknown_backend(settings)


def _unknown_backend(settings: Settings) -> str:
    """Why torch cannot compile as told, which ranks find out minutes later; empty where it can.

    The usual backends are known without torch, whose import takes seconds.
    """
    if not settings.compile or settings.backend in USUAL_BACKENDS:
        return ""
    from torch._dynamo import list_backends

    if settings.backend in list_backends(exclude_tags=None):
        return ""
    known = ", ".join(dict.fromkeys([*USUAL_BACKENDS, *list_backends()]))
    return f"backend is {settings.backend!r}, which torch does not know: name one of {known}"


def _unwritable(directory: Path) -> str:
    """Why a directory takes no checkpoints, which ranks find out minutes later; empty where it does."""
    try:
        there = next(path for path in (directory, *directory.parents) if path.exists())
        with TemporaryFile(dir=there):
            return ""
    except OSError as error:
        return f"checkpoints cannot be written to {directory}: {reason_within(error)}"


def _published(settings: Settings, arguments: argparse.Namespace, journals: Path) -> int:
    """Publish what the trainer has handed over; 1 where that is not possible."""
    from ett_cli.publishing import found_in

    try:
        order = order_of(settings.publish_to, arguments, os.environ)
        last = [each for each in found_in(settings.checkpoint_dir) if each.step == settings.steps]
        later = Later(last[0].anchor, journals) if arguments.publish_later and last else None
        return publish_after(last, order, os.environ, partial(say, "train"), later=later)
    except (OSError, ValueError) as error:
        return complain("train", error, 1)


def _config(arguments: argparse.Namespace) -> Config:
    """The file and what the command line says otherwise.

    Raises:
        OSError: the file cannot be read.
        ValueError: a setting is wrong, in the file or here.
    """
    from ett_cli.training.config import TRAINER, parts_in, read

    try:
        config = read(arguments.config.read_text() if arguments.config else "")
    except ValueError as error:
        raise ValueError(f"{arguments.config}: {error}") from error
    given = vars(arguments)
    told = {name: given[name] for name in ("ranks", "rank_restarts", "run_dir") if given[name] is not None}
    trainer = {name: given[name] for name in TRAINER if name in given}
    if arguments.plain or arguments.parts is not None:
        told["parts"] = parts_in("" if arguments.plain else arguments.parts)
    return replace(config, **told, trainer={**config.trainer, **trainer})


def _check_addresses(settings: Settings) -> None:
    """Refuse URLs that no rank could use.

    Raises:
        ValueError: nobody knows this kind of URL, or its package is missing.
    """
    from ett_trainer_hooks.pipeline.bundle.files import is_shared
    from ett_trainer_hooks.pipeline.checkpoint.asking import Asked, RemoteError

    for name in ("checkpoint_remote", "cache", "publish_to"):
        try:
            if is_shared(address := getattr(settings, name)):
                Asked(address)
        except RemoteError as error:  # noqa: PERF203 - which of them
            raise ValueError(f"{name}: {error}") from error
