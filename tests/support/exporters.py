"""Exporters as processes, for tests that harm them."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY_S = 120.0
"""A start takes a second or two; with twenty programs beside it on two processors, half a minute."""
ETT = str(Path(sys.executable).with_name("ett"))


class Running:
    """A process of `ett exporter`, and its URL."""

    def __init__(self, *words: str) -> None:
        command = [ETT, "exporter", "--port", "0", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if readable else ""
        if "http://" not in line:
            self.process.kill()
            raise RuntimeError(f"the exporter did not start: {self.process.communicate()}")
        self.url = line.split()[3]

    def kill(self) -> None:
        """End it without a warning."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        """Run until the block ends."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End it if it runs."""
        self.close()

    def close(self) -> None:
        """End it if it runs, and forget it."""
        self.kill()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def running(*words: str) -> Iterator[Running]:
    """An exporter that ends with the block."""
    exporter = Running(*words)
    try:
        yield exporter
    finally:
        exporter.close()
