"""The options of `ett run` about stalls: from the command line to settings of the launcher's watchdog."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ett_trainer_hooks.launcher.stalls import StallSettings


def add_stall_options(parser: argparse.ArgumentParser) -> None:
    """Declare them; what is not given is left to the defaults of the launcher."""
    group = parser.add_argument_group("stalls", "No rank of this node makes progress for too long (0: never)")
    places = {
        "after": "in the training loop (default: 300, and at least ten usual steps)",
        "first-batch": "before the first step is over (default: 1800)",
        "evaluation": "in an evaluation (default: 1800)",
        "checkpoint": "in a checkpoint (default: 1800)",
        "compile": "in a compilation of a later step (default: 1800)",
    }
    for name, where in places.items():
        group.add_argument(f"--stall-{name}", type=float, metavar="SECONDS", help=where)
    group.add_argument(
        "--stall-action",
        metavar="ACTION",
        help="none: tell of it; dump: also record what the ranks are doing (default); kill: end the command",
    )


def stall_settings(arguments: argparse.Namespace) -> StallSettings:
    """The settings of a command line.

    Raises:
        ValueError: one is wrong; the message names the option.
    """
    from ett_core.waits import check_wait
    from ett_trainer_hooks.launcher.stalls import StallLimits, StallSettings

    given = {
        "after_s": arguments.stall_after,
        "first_batch_s": arguments.stall_first_batch,
        "evaluation_s": arguments.stall_evaluation,
        "checkpoint_s": arguments.stall_checkpoint,
        "compile_s": arguments.stall_compile,
    }
    for name, seconds in given.items():
        if seconds is not None:
            check_wait("--stall-" + name.removesuffix("_s").replace("_", "-"), seconds)
    limits = StallLimits(**{name: seconds for name, seconds in given.items() if seconds is not None})
    action = arguments.stall_action
    return StallSettings(limits=limits) if action is None else StallSettings(limits=limits, action=action)
