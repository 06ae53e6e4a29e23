"""Programs that serve something for the length of a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ett_cli.demo.stage import free_port

ETT = Path(sys.executable).with_name("ett")
PATIENCE_S = 180.0
"""How long an answer is waited for, on a slow machine with much to do."""


def free_address() -> str:
    """An address of this machine at which nobody listens, and that no connection gets meanwhile."""
    return f"127.0.0.1:{free_port()}"


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A real `ett` service on a free port: its address, once it has said it, and its process."""
    with subprocess.Popen([ETT, *words, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = next((word for word in line.split() if word.startswith("http://")), None)
            assert url is not None, f"ett {words[0]} said {line!r}"
            yield url, process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended with the block; what it says goes nowhere."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
