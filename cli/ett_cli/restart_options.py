"""The options of `ett run` about restarts: from the command line to the policy of the launcher."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ett_trainer_hooks.launcher.restarts import RestartPolicy


def add_restart_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
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


def restart_policy(arguments: argparse.Namespace) -> RestartPolicy:
    """The policy of a command line.

    Raises:
        ValueError: a setting is wrong; the message names it.
    """
    from ett_trainer_hooks.launcher.restarts import RestartPolicy

    return RestartPolicy(
        max_restarts=arguments.max_restarts,
        delay_s=arguments.restart_delay,
        on=causes_in(arguments.restart_on or ["failed"]),
    )


def causes_in(given: list[str]) -> tuple[str, ...]:
    """The causes in what was given, one by one or with commas.

    >>> causes_in(["oom, SIGSEGV", "75"])
    ('oom', 'SIGSEGV', '75')
    """
    return tuple(cause.strip() for text in given for cause in text.split(","))
