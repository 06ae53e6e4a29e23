"""A PostgreSQL server of its own for tests: in a temporary directory, over a Unix socket, unprivileged.

Its files are not synced: the machine does not crash in tests, only the server does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

USER = "nobody"
"""Who runs the server where the tests are run by root, as which it refuses to run."""


def programs() -> Path | None:
    """The directory of the server's programs; Debian keeps them off PATH."""
    on_path = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    found = [*places, *([Path(on_path).parent] if on_path else [])]
    return next((place for place in found if (place / "postgres").exists()), None)


class Cluster:
    """A server that is started, stopped and killed by tests; `remove` it at the end."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ett-pg-"))
        self._as_root = {"user": USER, "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
        if self._as_root:
            shutil.chown(self.directory, USER)
        words = ["-D", "data", "-U", "ett", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", *words)
        self.start()

    def start(self) -> None:
        options = {"listen_addresses": "", "max_connections": 300, "fsync": "off"}
        words = [f"-c {name}={value}" for name, value in options.items()]
        settings = " ".join([*words, f"-k {self.directory}"])
        self._run("pg_ctl", "-D", "data", "-w", "-t", "120", "-l", "log", "-o", settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def database(self, name: str) -> str:
        """The URL of a new, empty database."""
        self._run("createdb", "-h", str(self.directory), "-U", "ett", name)
        return f"postgresql://ett@/{name}?host={self.directory}"

    def dump(self, name: str, file: str) -> None:
        self._run("pg_dump", "-h", str(self.directory), "-U", "ett", "-Fc", "-f", file, name)

    def restore(self, name: str, file: str) -> None:
        self._run("pg_restore", "-h", str(self.directory), "-U", "ett", "-d", name, file)

    def remove(self) -> None:
        if (self.directory / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.directory)

    def _run(self, program: str, *words: str) -> None:
        place = programs()
        assert place is not None, "PostgreSQL is not installed"
        done = subprocess.run(
            [str(place / program), *words],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={"PATH": os.defpath, "HOME": str(self.directory), "LC_ALL": "C"},
            **self._as_root,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}"
