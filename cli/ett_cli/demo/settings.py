"""What the demo is told, checked before anything starts: steps, ports and the run directory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ett_cli.demo.stage import HOST, free_port
from ett_core.reasons import listening_reason

_LARGEST_PORT = 65_535


class UnusableError(Exception):
    """A setting cannot be used on this machine; the message names its option, `status` is for exit."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def refusal(steps: int, port: int, app_port: int) -> str:
    """Why these settings cannot work on any machine, by the name of the option; empty if they can.

    >>> refusal(0, 0, 0)
    '--steps needs at least 1, not 0'
    """
    if steps < 1:
        return f"--steps needs at least 1, not {steps}"
    for option, number in (("--port", port), ("--app-port", app_port)):
        if not 0 <= number <= _LARGEST_PORT:
            return f"{option} {number} is not between 0 and {_LARGEST_PORT}"
    return f"--port and --app-port are both {port}" if port == app_port != 0 else ""


def checked_ports(port: int, app_port: int) -> tuple[int, int]:
    """The ports of exporter and app, each listened on for a moment; free ones for 0.

    Raises:
        UnusableError: somebody listens there, or we may not; status 1.
    """
    return _checked_port("--port", port), _checked_port("--app-port", app_port)


def make_run_dir(run_dir: Path) -> None:
    """Make the directory unless it is there, and see that files can be written in it.

    Raises:
        UnusableError: it is a file, or nothing can be written there; status 2.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=run_dir):
            pass
    except (FileExistsError, NotADirectoryError) as error:
        raise UnusableError(f"--run-dir {run_dir} is or lies below a file, not a directory", 2) from error
    except OSError as error:
        raise UnusableError(f"--run-dir {run_dir} cannot be written: {error.strerror}", 2) from error


def _checked_port(option: str, port: int) -> int:
    try:
        return free_port(port)
    except OSError as error:
        reason = listening_reason(error)
        raise UnusableError(f"{option}: cannot listen on {HOST}:{port}: {reason}", 1) from error
