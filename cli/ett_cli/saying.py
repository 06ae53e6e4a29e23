"""What a command says to people: sentences on standard error that begin with its name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ett_core.lines import BadLine


def say(command: str, sentence: object) -> None:
    """Print a sentence of `ett COMMAND`; where nobody reads it any more, the work goes on."""
    if sys.stderr is None:  # print would take standard output
        return
    try:
        print(f"ett {command}: {sentence}", file=sys.stderr, flush=True)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: in the midst of another sentence
        return


def complain(command: str, reason: object, status: int) -> int:
    """Say why `ett COMMAND` did not do what it was asked for; returns the exit status that goes with it."""
    say(command, reason)
    return status


def remark(command: str, bad: BadLine) -> None:
    """Tell of a line that cannot be used, as FILE:LINE: REASON; of a file that cannot, in a sentence."""
    if bad.line:
        print(bad, file=sys.stderr)
    else:
        say(command, f"{bad.source}: {bad.reason}")


def lacking(packages: Sequence[str]) -> str:
    """What to do about packages that are not there.

    >>> lacking(["streamlit"])
    "needs the package streamlit. In the checkout of ettwatch: pip install '.[all]' (torch: docs/install.md)"
    """
    named = f"package{'' if len(packages) == 1 else 's'} {', '.join(packages)}"
    return f"needs the {named}. In the checkout of ettwatch: pip install '.[all]' (torch: docs/install.md)"
