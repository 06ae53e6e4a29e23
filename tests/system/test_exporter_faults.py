"""What may happen to an exporter under load: killed, stopped, out of disk, locked out, told wrong times.

Senders behave as the shipper does: a segment is sent again until it is acknowledged. With
ETT_FULL=1 the exporter is killed fifty times instead of five.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import postgresql
import psycopg
import pytest
from exporters import Running, running

from ett_core.accounting import JobFold
from ett_core.events import AnyEvent, AttemptEnd, AttemptStart, FirstBatch, JobEnd, Progress, encode
from ett_exporter.segment_rows import unpacked
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

FULL = os.environ.get("ETT_FULL") == "1"
KILLS = 50 if FULL else 5
BEGIN = 1_764_000_000.0
SEGMENT_EVENTS = 5
JOBS = 4
HTTP = httpx.Client(timeout=60.0, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
PAUSE_S = 0.01


class Story:
    """A job that makes a step a second, told by one writer in segments, endless until `last` is asked for."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.told: list[AnyEvent] = []
        self._tell(AttemptStart, 0.0, world_size=1, accelerators=1)
        self._tell(FirstBatch, 1.0)
        self._sent = 0

    def next(self) -> bytes:
        """The next segment."""
        for _ in range(SEGMENT_EVENTS):
            step = len(self.told) - 1
            self._tell(Progress, 1.0 + step, step=step, steps=1, samples=1.0)
        return self._unsent()

    def last(self) -> bytes:
        """The end of the job."""
        at = 1.0 + len(self.told)
        self._tell(AttemptEnd, at, status="succeeded")
        self._tell(JobEnd, at, status="succeeded")
        return self._unsent()

    def _tell(self, kind: type[Any], at: float, **fields: Any) -> None:
        envelope = {"job_id": self.job_id, "writer": f"w-{self.job_id}", "attempt": 0, "rank": 0}
        self.told.append(kind(**envelope, seq=len(self.told), time=BEGIN + at, **fields))

    def _unsent(self) -> bytes:
        events, self._sent = self.told[self._sent :], len(self.told)
        return b"\n".join(map(encode, events))


class Load:
    """Senders of some jobs, a thread each, to wherever `url` points."""

    def __init__(self, url: str, jobs: int = JOBS) -> None:
        self.url = url
        self.acknowledged = {f"job-{number}": 0 for number in range(jobs)}
        """Events that an answer said to be held, by job."""
        self.stories = {job_id: Story(job_id) for job_id in self.acknowledged}
        self.statuses: set[int] = set()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send_on, args=(s,)) for s in self.stories.values()]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def wait_for_all(self) -> None:
        """Return once every job has had an answer."""
        deadline_s = time.monotonic() + 120.0
        while not all(self.acknowledged.values()):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)

    def end(self) -> None:
        """Send what is begun, then the ends of the jobs."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for story in self.stories.values():
            self._deliver(story, story.last())

    def _send_on(self, story: Story) -> None:
        while not self._stop.wait(PAUSE_S):
            self._deliver(story, story.next())

    def _deliver(self, story: Story, body: bytes) -> None:
        gives_up_s = time.monotonic() + 120.0
        while time.monotonic() < gives_up_s:
            with suppress(httpx.HTTPError):
                answer = HTTP.post(f"{self.url}/api/v1/segments", content=body, timeout=30.0)
                self.statuses.add(answer.status_code)
                if answer.status_code == 200:
                    assert answer.json()["rejected"] == []
                    self.acknowledged[story.job_id] += body.count(b"\n") + 1
                    return
            time.sleep(0.02)
        pytest.fail("a segment was not acknowledged within two minutes")


@contextmanager
def load_on(exporter: Running) -> Iterator[Load]:
    load = Load(exporter.url)
    load.start()
    try:
        yield load
    finally:
        load._stop.set()
        for thread in load._threads:
            thread.join()


def jobs_of(url: str) -> dict[str, Any]:
    answer = HTTP.get(f"{url}/api/v1/jobs", timeout=60.0).raise_for_status()
    return {job["job_id"]: job for job in answer.json()["jobs"]}


def held(job: dict[str, Any]) -> float:
    """Events of a job that its figures show: one sample each, and the two before the first."""
    return job["samples"] + 2


def check_totals(url: str, load: Load) -> None:
    """Every figure of every job is that of its events, each counted once."""
    for job_id, story in load.stories.items():
        fold = JobFold(job_id)
        fold.add(story.told)
        account = fold.account(BEGIN + 1e6)
        job = HTTP.get(f"{url}/api/v1/jobs/{job_id}", timeout=60.0).json()
        assert job["samples"] == len(story.told) - 4
        assert job["components"] == dict(account.components)
        assert (job["wall_s"], job["step"], job["state"]) == (account.wall_s, account.step, "succeeded")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new database of either kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "ett.sqlite")
        return
    cluster = postgresql.Cluster()
    try:
        yield cluster.database("ett")
    finally:
        cluster.remove()


def started_again(database: str) -> Running:
    """An exporter over a database whose server may not have noticed yet that the one before was killed."""
    gives_up_s = time.monotonic() + 120.0
    while time.monotonic() < gives_up_s:
        with suppress(RuntimeError):
            return Running("--database", database)
        time.sleep(0.05)
    return Running("--database", database)


def test_killed_at_random_moments_it_loses_nothing_and_counts_nothing_twice(database):
    """After each kill -9 what was acknowledged is there; in the end all is as in an unharmed run."""
    chance = random.Random(20_261_129)
    exporter = Running("--database", database)
    load = Load(exporter.url)
    load.start()
    try:
        for _ in range(KILLS if FULL or "://" not in database else 2):
            time.sleep(chance.uniform(0.05, 0.6))
            exporter.kill()
            acknowledged = dict(load.acknowledged)
            exporter.close()
            exporter = started_again(database)
            shown = jobs_of(exporter.url)
            for job_id, count in acknowledged.items():
                assert count == 0 or held(shown[job_id]) >= count
            load.url = exporter.url
        load.end()
        check_totals(exporter.url, load)
    finally:
        load._stop.set()
        exporter.close()


def test_who_was_replaced_while_it_stood_still_ends_and_its_successor_speaks_for_the_jobs(database):
    """It finds out by itself, though nobody sends anything to it: each job is shown by one exporter."""
    first = Running("--database", database)
    try:
        with load_on(first) as load:
            load.wait_for_all()
            load.end()
        first.process.send_signal(signal.SIGSTOP)
        end_its_locks(database)
        with started_again(database) as second:
            first.process.send_signal(signal.SIGCONT)
            _, said = first.process.communicate(timeout=120)
            assert first.process.returncode == 1
            assert said.endswith("ett exporter: another exporter has taken over this database\n")
            check_totals(second.url, load)
            assert HTTP.get(f"{second.url}/readyz").status_code == 200
    finally:
        first.close()


def end_its_locks(database: str) -> None:
    """As somebody does who removes a lock file, and a server that takes the holder's machine for gone."""
    if "://" not in database:
        Path(f"{database}.lock").unlink()
        return
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )


def test_stopped_under_load_it_ends_well_and_keeps_what_it_acknowledged(tmp_path):
    """SIGTERM: status 0, no word on standard error, and every answer that was given holds."""
    database = str(tmp_path / "ett.sqlite")
    exporter = Running("--database", database)
    with load_on(exporter) as load:
        waiting = threading.Thread(
            target=lambda: HTTP.get(f"{exporter.url}/api/v1/changes?since=none-0&wait=60", timeout=90)
        )
        waiting.start()
        load.wait_for_all()
        time.sleep(0.3)
        exporter.process.send_signal(signal.SIGTERM)
        assert exporter.process.wait(45) == 0  # sooner than who waits for changes had waited
        assert exporter.process.stderr.read() == ""
        acknowledged = dict(load.acknowledged)
        exporter.close()
        waiting.join()
        exporter = Running("--database", database)
        shown = jobs_of(exporter.url)
        assert sum(acknowledged.values()) > 0
        for job_id, count in acknowledged.items():
            assert count == 0 or held(shown[job_id]) >= count
        load.url = exporter.url
        load.end()
        check_totals(exporter.url, load)
    exporter.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_and_recovers(small_disk):
    """Without room segments are refused with 503 and a reason, readers are served; with room all goes on."""
    filler = small_disk / "filler"
    with running("--database", str(small_disk / "ett.sqlite")) as exporter, load_on(exporter) as load:
        load.wait_for_all()
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        deadline = time.monotonic() + 120
        while not load.statuses & {503, 507}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refused = HTTP.post(f"{exporter.url}/api/v1/segments", content=Story("other").next())
        assert refused.status_code in (503, 507)
        assert refused.headers["retry-after"]
        assert "full" in refused.json()["error"] or "disk" in refused.json()["error"]
        assert set(jobs_of(exporter.url)) <= set(load.stories)
        filler.unlink()
        load.end()
        check_totals(exporter.url, load)
    assert load.statuses <= {200, 503, 507}


def test_a_database_that_somebody_else_locks_is_waited_for(tmp_path):
    """While another program holds the lock nothing is acknowledged and readers are served; then all is."""
    database = tmp_path / "ett.sqlite"
    with running("--database", str(database)) as exporter, load_on(exporter) as load:
        load.wait_for_all()
        jobs_of(exporter.url)
        with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            before = dict(load.acknowledged)
            time.sleep(0.7 if not FULL else 15)
            for job_id, count in load.acknowledged.items():  # one segment each may have been in before
                assert count - before[job_id] <= SEGMENT_EVENTS
            assert HTTP.get(f"{exporter.url}/healthz").text == "ok"
            assert set(jobs_of(exporter.url)) == set(load.stories)
            assert HTTP.get(f"{exporter.url}/metrics").text.count("ett_job_info{") == len(load.stories)
            other.execute("ROLLBACK")
        load.end()
        check_totals(exporter.url, load)
    assert load.statuses <= {200, 503}


@pytest.mark.parametrize("off_s", [-3 * 3600.0, 3 * 3600.0])
def test_a_clock_that_is_hours_off_changes_no_duration_and_is_put_right(tmp_path, off_s):
    """A sender whose clock is three hours off is placed where it belongs, to half a second."""
    story = Story("off")
    body = story.next() + b"\n" + story.last()
    shift = time.time() - BEGIN - 100.0
    moved = [msgspec.structs.replace(event, time=event.time + shift + off_s) for event in story.told]
    assert body
    with running("--database", str(tmp_path / "ett.sqlite")) as exporter:
        answer = HTTP.post(
            f"{exporter.url}/api/v1/segments",
            content=b"\n".join(map(encode, moved)),
            headers={"X-Ett-Sent-At": f"{time.time() + off_s:.6f}"},
        )
        assert answer.json()["accepted"] == len(moved)
        job = jobs_of(exporter.url)["off"]
    assert job["start"] == pytest.approx(BEGIN + shift, abs=0.5)
    assert job["wall_s"] == pytest.approx(moved[-1].time - moved[0].time)


def test_garbage_beside_good_senders_changes_nothing(tmp_path):
    """A sender of noise is told so line by line; the others' figures are as without it."""
    chance = random.Random(1)
    with running("--database", str(tmp_path / "ett.sqlite")) as exporter, load_on(exporter) as load:
        for _ in range(30):
            noise = chance.randbytes(20_000) + b"\n{}\n" + b'{"v":1,"kind":"progress","job_id":"noise"}\n'
            answer = HTTP.post(f"{exporter.url}/api/v1/segments", content=noise)
            assert answer.status_code == 200
            assert answer.json()["accepted"] == 0
        load.end()
        assert set(jobs_of(exporter.url)) == set(load.stories)
        check_totals(exporter.url, load)


def test_killed_while_it_puts_segments_together_it_loses_nothing(tmp_path):
    """Jobs that are over, in many segments: at every kill each line is there once, and repeats are known."""
    chance = random.Random(20_261_130)
    path = tmp_path / "ett.sqlite"
    sent = segments_of_jobs_that_are_over(path)
    for _ in range(KILLS - 2):
        exporter = Running("--database", str(path), "--retain", "0")
        time.sleep(chance.uniform(0.0, 0.4))
        exporter.kill()
        exporter.close()
        assert lines_by_job(path) == sent
    with running("--database", str(path), "--retain", "0") as exporter:
        deadline_s = time.monotonic() + 60.0
        while rows_of(path) > len(sent):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        for lines in sent.values():
            body = b"\n".join(lines)
            assert HTTP.post(f"{exporter.url}/api/v1/events", content=body).json()["duplicates"] == len(lines)
        assert {job["samples"] for job in jobs_of(exporter.url).values()} == {float(SEGMENT_EVENTS * 40)}
    assert lines_by_job(path) == sent


def segments_of_jobs_that_are_over(path: Path) -> dict[str, list[bytes]]:
    """Write a database of jobs that ended long ago, closed; their lines in order."""
    now = BEGIN
    with closing(Store(str(path))) as store:
        service = Service(store, Settings(retain_days=0.0), clock=lambda: now)
        stories = [Story(f"over-{number}") for number in range(12)]
        for story in stories:
            for body in (*(story.next() for _ in range(40)), story.last()):
                service.ingest(body)
        now += 20 * 86_400.0
        service.upkeep.close_jobs(now)
    return {story.job_id: list(map(encode, story.told)) for story in stories}


def lines_by_job(path: Path) -> dict[str, list[bytes]]:
    """The lines of each job as they are kept, in order."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT job_id, lines_zlib FROM segments ORDER BY id").fetchall()
    found: dict[str, list[bytes]] = {}
    for job_id, blob in rows:
        found.setdefault(job_id, []).extend(unpacked(blob).split(b"\n"))
    return dict(sorted(found.items(), key=lambda each: int(each[0].removeprefix("over-"))))


def rows_of(path: Path) -> int:
    """How many rows hold segments."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM segments").fetchone()
    return int(count)
