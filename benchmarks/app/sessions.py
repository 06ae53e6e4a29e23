"""How long does the app take to refresh with many sessions open, and does its memory stay flat?

Sessions without a browser: each speaks Streamlit's protocol as a browser does, opens a page, and then
refreshes each of its live areas as often as the page says. Printed are the times from the request of
a refresh to its last message, the processor time of the app, and its resident memory over time.

    python benchmarks/app/sessions.py --app http://127.0.0.1:8501 --pid 4711 --minutes 5

`--minutes 60` is a soak of an hour, 480 one of eight. Needs the packages streamlit and websockets.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

TICKS = os.sysconf("SC_CLK_TCK")
MEMORY_EVERY_S = 10.0
WARM_UP_S = 20.0
MOST_BYTES = 256 * 2**20


@dataclass
class Told:
    """What all sessions saw."""

    opened_s: list[float] = field(default_factory=list)
    refreshed_s: list[float] = field(default_factory=list)
    bytes_in: int = 0
    failed: int = 0
    areas: int = 0


class Session:
    """One open page."""

    def __init__(self, app: str, page: str, query: str, told: Told) -> None:
        self.address = app.replace("http", "ws", 1) + "/_stcore/stream"
        self.page, self.query, self.told = page, query, told
        self.areas: dict[str, float] = {}

    async def run(self, until: float, counting_from: float) -> None:
        """Open the page and refresh it until a moment of the monotonic clock."""
        async with websockets.connect(
            self.address, subprotocols=[websockets.Subprotocol("streamlit")], max_size=MOST_BYTES
        ) as socket:
            self.told.opened_s.append(await self.ask(socket, ""))
            self.told.areas = max(self.told.areas, len(self.areas))
            due = {area: time.monotonic() + every for area, every in self.areas.items()}
            while due and (area := min(due, key=lambda name: due[name])) and due[area] < until:
                await asyncio.sleep(max(0.0, due[area] - time.monotonic()))
                took_s = await self.ask(socket, area)
                if time.monotonic() > counting_from:
                    self.told.refreshed_s.append(took_s)
                due[area] = time.monotonic() + self.areas.get(area, 5.0)

    async def ask(self, socket: websockets.ClientConnection, area: str) -> float:
        """Run the page (or one live area of it) and wait for its end; returns seconds."""
        message = BackMsg()
        message.rerun_script.query_string = self.query
        message.rerun_script.page_name = self.page
        if area:
            message.rerun_script.fragment_id = area
            message.rerun_script.is_auto_rerun = True
        began = time.monotonic()
        await socket.send(message.SerializeToString())
        while True:
            data = await socket.recv()
            self.told.bytes_in += len(data)
            answer = ForwardMsg()
            answer.ParseFromString(data if isinstance(data, bytes) else data.encode())
            kind = answer.WhichOneof("type")
            if kind == "auto_rerun":
                self.areas[answer.auto_rerun.fragment_id] = answer.auto_rerun.interval
            elif kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
                self.told.failed += 1
            elif kind == "script_finished":
                return time.monotonic() - began


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def processor_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def at(values: list[float], share: float) -> float:
    """A quantile."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


async def watch(pid: int, until: float, seen: list[tuple[float, float]]) -> None:
    """Note the memory of the app from time to time."""
    began = time.monotonic()
    while time.monotonic() < until:
        seen.append((time.monotonic() - began, memory_mb(pid)))
        await asyncio.sleep(MEMORY_EVERY_S)


async def measure(chosen: argparse.Namespace) -> None:
    """Open the sessions, one after the other, and print what was seen."""
    told = Told()
    memory: list[tuple[float, float]] = []
    begin = time.monotonic()
    until, counting_from = begin + chosen.minutes * 60, begin + WARM_UP_S
    before_s = processor_s(chosen.pid)
    sessions = []
    for number in range(chosen.sessions):
        page, _, query = chosen.pages[number % len(chosen.pages)].partition("?")
        session = Session(chosen.app, page.strip("/"), query, told)
        sessions.append(asyncio.create_task(session.run(until, counting_from)))
        await asyncio.sleep(chosen.apart_s)
    watching = asyncio.create_task(watch(chosen.pid, until, memory))
    await asyncio.gather(*sessions, watching)
    spent_s, wall_s = processor_s(chosen.pid) - before_s, time.monotonic() - begin
    refreshes = told.refreshed_s
    runs = max(len(refreshes) + len(told.opened_s), 1)
    sys.stdout.write(
        f"{chosen.sessions} sessions, {told.areas} live areas at most, {wall_s / 60:.1f} minutes\n"
        f"opening: median {statistics.median(told.opened_s):.3f} s, longest {max(told.opened_s):.3f} s\n"
        f"{len(refreshes):,} refreshes: median {at(refreshes, 0.5):.3f} s, p95 {at(refreshes, 0.95):.3f} s, "
        f"p99 {at(refreshes, 0.99):.3f} s, longest {max(refreshes, default=0):.3f} s\n"
        f"processor time of the app: {1e3 * spent_s / runs:.0f} ms a run, "
        f"{100 * spent_s / wall_s:.0f} % of a core\n"
        f"received {told.bytes_in / 2**20:.0f} MiB, {told.failed} errors shown\n"
    )
    for second, amount in memory[:: max(len(memory) // 12, 1)]:
        sys.stdout.write(f"  after {second / 60:6.1f} min {amount:8.1f} MB\n")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--app", default="http://127.0.0.1:8501")
    parser.add_argument("--pid", type=int, required=True, help="process of the app")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--apart-s", type=float, default=0.3, help="seconds between two that open")
    parser.add_argument("--pages", nargs="+", default=["/", "/job?id=bench%2F000001"], help="in turns")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
