"""The app over a fleet of very many jobs, all parts by one command: feed, pages, sessions, soak.

    python benchmarks/app/fleet.py --jobs 10000 --rounds 5 --minutes 3
    python benchmarks/app/fleet.py --jobs 10000 --rounds 0 --minutes 60 --sessions 5     # the soak of an hour

The store of the fleet is made once and kept in `--folder`; each run works on a copy of it, in which the jobs
go on reporting. Pages are opened by Chromium (`pages.py`), sessions speak Streamlit's protocol
(`sessions.py`). Says how busy the machine was before each part. Needs Debian's chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).parent
ETT = Path(sys.executable).with_name("ett")
STORE, MADE = "fleet.sqlite", "made"
JOB = "bench/000001"
QUICK_S, QUICK_ANSWERS, SETTLED_WITHIN_S = 0.5, 5, 900.0


@contextmanager
def started(*command: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that goes on until the block ends, and the line that it says once it is ready.

    One that ends before is an error: what was measured without it is of something else.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline().strip() if process.stdout else ""
            yield process, line
            if process.poll() is not None:
                raise SystemExit(f"ended before the end: {process.args}")
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, int]]:
    """A service of `ett` on a free port: its address and its process id."""
    with started(ETT, *words, "--port", "0") as (process, line):
        url = next((word for word in line.split() if word.startswith("http://")), None)
        if url is None:
            raise SystemExit(f"ett {words[0]} said {line!r}")
        yield url, process.pid


@contextmanager
def feeding(exporter: str, jobs: int, made: Path) -> Iterator[None]:
    """The jobs of a made store go on; ends with the block."""
    words = [sys.executable, HERE / "feed.py", "--exporter", exporter, "--jobs", str(jobs)]
    command = [*words, "--made", made, "--live"]
    with started(*command) as (_, line):
        tell(line)
        yield


def settle(exporter: str) -> None:
    """Wait until the exporter knows all jobs again and answers about the fleet as it goes on to do.

    Raises:
        SystemExit: that took too long.
    """
    began_s, quick = time.monotonic(), 0
    while quick < QUICK_ANSWERS:
        if time.monotonic() - began_s > SETTLED_WITHIN_S:
            raise SystemExit(f"the exporter has not settled within {SETTLED_WITHIN_S:.0f} s")
        asked_s = time.monotonic()
        is_ready = all(_answers(f"{exporter}{path}") for path in ("/readyz", "/api/v1/fleet?window=24h"))
        quick = quick + 1 if is_ready and time.monotonic() - asked_s < QUICK_S else 0
        time.sleep(1)
    tell(f"the exporter had settled after {time.monotonic() - began_s:.0f} s")


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=SETTLED_WITHIN_S) as answer:  # noqa: S310 - our own address
            return bool(answer.read())
    except OSError:
        return False


def make(folder: Path, jobs: int) -> None:
    """Fill a store, unless one of so many jobs is there; one that was left half filled is made anew."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / MADE).exists():
        return
    for half in folder.glob(f"{STORE}*"):
        half.unlink()
    with serving("exporter", "--database", str(folder / STORE)) as (exporter, _):
        words = [HERE / "feed.py", "--exporter", exporter, "--jobs", str(jobs), "--made", folder / MADE]
        subprocess.run([sys.executable, *words], check=True)


def measure(program: str, *words: str) -> None:
    """One of the programs of this folder, with the load of the machine before it."""
    tell(f"\n{program}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    subprocess.run([sys.executable, HERE / program, *words], check=True)


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Make what is missing, serve it, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="of the store (default: one a number of jobs, in /tmp)")
    parser.add_argument("--rounds", type=int, default=5, help="of each page in Chromium; 0 leaves it out")
    parser.add_argument("--minutes", type=float, default=3.0, help="of the sessions; 0 leaves them out")
    parser.add_argument("--sessions", type=int, default=20)
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.gettempdir()) / f"ett-fleet-{chosen.jobs}"
    make(folder, chosen.jobs)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        for file in folder.glob(f"{STORE}*"):
            shutil.copy(file, scratch)
        exporter, _ = stack.enter_context(serving("exporter", "--database", str(Path(scratch) / STORE)))
        app, pid = stack.enter_context(serving("dashboard", "--exporter", exporter))
        stack.enter_context(feeding(exporter, chosen.jobs, folder / MADE))
        settle(exporter)
        if chosen.rounds:
            measure("pages.py", "--app", app, "--job", JOB, "--rounds", str(chosen.rounds))
        if chosen.minutes:
            asked = ["--sessions", str(chosen.sessions), "--minutes", str(chosen.minutes)]
            measure("sessions.py", "--app", app, "--pid", str(pid), *asked)


if __name__ == "__main__":
    main()
