"""`ett demo`: a real job on this machine, killed in the middle, observed from start to recovery.

Starts real processes on loopback ports and stops them all before it ends, also on Ctrl-C and
SIGTERM.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from ett_cli.saying import complain, lacking

if TYPE_CHECKING:
    from ett_cli.demo.stage import Stage

NEEDED = ("torch", "torchrec", "prometheus_client", "starlette", "sqlalchemy")


class Stopped(KeyboardInterrupt):
    """Somebody wants the demo to end; holds the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett demo`."""
    parser.add_argument(
        "--headless",
        action="store_true",
        help="end when the job is done; status 0 only if it recovered and the partition adds up",
    )
    parser.add_argument("--no-app", action="store_true", help="leave the app out")
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="where everything is written (default: runs/<time>)"
    )
    parser.add_argument("--steps", type=int, default=900, help="steps to train (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port of the exporter (default: a free one)")
    parser.add_argument("--app-port", type=int, default=0, help="port of the app (default: a free one)")


def run(arguments: argparse.Namespace) -> int:
    """Play the demo.

    Returns 0 if it showed what it promises, 1 if not, 2 for settings that cannot work, 128 + n
    after signal n.
    """
    from ett_cli.demo.settings import UnusableError, checked_ports, make_run_dir, refusal

    refused = refusal(arguments.steps, arguments.port, arguments.app_port)
    if refused:
        return complain("demo", refused, 2)
    needed = [
        name for name in (*NEEDED, *(() if arguments.no_app else ("streamlit",))) if not find_spec(name)
    ]
    if needed:
        return complain("demo", lacking(needed), 1)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    run_dir = (arguments.run_dir or Path("runs", stamp)).absolute()
    try:
        make_run_dir(run_dir)
        ports = checked_ports(arguments.port, 0 if arguments.no_app else arguments.app_port)
    except UnusableError as error:
        return complain("demo", error, error.status)
    stage = _stage(arguments, f"demo-{stamp}-{secrets.token_hex(2)}", run_dir, ports)
    _say(f"ett demo: job {stage.job_id}, everything in {stage.run_dir}")
    try:
        with _stoppable():
            return _play(stage, stay=not arguments.headless)
    except Stopped as stopped:
        _say("ett demo: stopped, nothing of it runs any more")
        return 128 + stopped.number


def _stage(arguments: argparse.Namespace, job_id: str, run_dir: Path, ports: tuple[int, int]) -> Stage:
    from ett_cli.demo.stage import LIMIT_S, WATCHED_LIMIT_S, Stage

    return Stage(
        job_id=job_id,
        run_dir=run_dir,
        exporter_port=ports[0],
        app_port=ports[1],
        steps=arguments.steps,
        app=not arguments.no_app,
        limit_s=LIMIT_S if arguments.headless else WATCHED_LIMIT_S,
    )


def _play(stage: Stage, *, stay: bool) -> int:
    from ett_cli.demo.children import Children
    from ett_cli.demo.judge import judge
    from ett_cli.demo.play import DemoError, Play
    from ett_cli.demo.stage import MARK
    from ett_cli.demo.words import where_to_go_on
    from ett_cli.report import report

    allocated_at = time.time()
    with Children(MARK, stage.job_id) as children:
        try:
            job = Play(stage, children, say=_say).run(allocated_at)
        except DemoError as error:
            return complain("demo", error, 1)
        _say(f"\n{report(job)}\n")
        status = judge(stage, job, say=_say)
        ett = "ett" if shutil.which("ett") else sys.argv[0]
        _say(f"\n{where_to_go_on(stage, stays=stay, ett=ett)}")
        if stay:
            _stay()
    return status


def _stay() -> None:
    try:
        signal.pause()
    except Stopped:
        _say("stopping")


@contextmanager
def _stoppable() -> Iterator[None]:
    """The first SIGINT or SIGTERM raises `Stopped`; more of them do not disturb the cleaning up."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def heard(number: int, _frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    before = {number: signal.signal(number, heard) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    print(text, flush=True)
