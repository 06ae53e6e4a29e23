"""Several replicas over one PostgreSQL: any takes in, exactly one accounts for each job."""

from __future__ import annotations

import random
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from sqlalchemy import text

from ett_core.events import Heartbeat, encode
from ett_exporter.errors import StoreError
from ett_exporter.ingest import Segment
from ett_exporter.jobs import BusyError
from ett_exporter.keeper import LAG_S, Keeper
from ett_exporter.owners import Shard
from ett_exporter.service import Service
from ett_exporter.settings import Limits, Settings
from ett_exporter.store import Store, raw_line

pytestmark = pytest.mark.service("postgresql")
NOW = 1_764_000_200.0
JOBS = [f"job-{n}" for n in range(9)]


def owner(job_id, count=3):
    return next(index for index in range(count) if Shard(index, count).holds(job_id))


@pytest.fixture
def replicas(database_url):
    """Three services in this process, each with a store of its own over the same database."""
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(database_url, Shard(n, 3)))) for n in range(3)]
        yield [Service(store, Settings(shard=store.shard), clock=lambda: NOW) for store in stores]


def follow(service):
    while service.jobs.follow():
        pass


def test_a_transaction_that_keeps_replicas_from_seeing_each_other_is_told_once(database_url, story, caplog):
    """Of whatever client: nothing is lost, but what others take in shows late."""
    now = [NOW]
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(database_url, Shard(n, 2)))) for n in range(2)]
        services = [Service(store, Settings(shard=store.shard), clock=lambda: now[0]) for store in stores]
        keeper = Keeper(services[0])
        job_id = next(name for name in JOBS if stores[0].owns(name))
        (body, *_) = story(job_id).bodies().values()
        with stores[0].transactions.engine.begin() as other:
            other.execute(text("SELECT pg_current_xact_id()"))
            services[1].ingest(body)
            follow(services[0])
            assert not services[0].knows(job_id)
            for now[0] in (NOW + LAG_S, NOW + LAG_S + 1, NOW + LAG_S + 2):
                keeper._watch_lag()
            assert [record.message.partition(":")[0] for record in caplog.records] == [
                "what replicas took in for each other in the last 21 s is not seen"
            ]
        keeper._watch_lag()
        keeper._watch_lag()
        assert caplog.records[-1].message == "what replicas take in for each other is seen again"
        assert len(caplog.records) == 2
        follow(services[0])
        assert services[0].knows(job_id)


def test_every_job_is_in_exactly_one_share():
    """Shares are disjoint, cover every job and are about equal."""
    shares = Counter(owner(f"team/job-{n}") for n in range(3000))
    assert sorted(shares) == [0, 1, 2]
    assert min(shares.values()) > 900


def test_any_replica_takes_in_and_the_owner_accounts(replicas, story):
    """Segments of a job come to whichever replica; its owner, and nobody else, has its whole account."""
    rng = random.Random(7)
    for job_id in JOBS:
        for body in story(job_id).bodies().values():
            lines = body.splitlines(keepends=True)
            for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :], lines):
                rng.choice(replicas).ingest(b"".join(half))
    for service in replicas:
        follow(service)
    for job_id in JOBS:
        pages = [service.page(job_id, NOW) for service in replicas]
        mine = pages.pop(owner(job_id))
        assert pages == [None, None]
        assert (mine.view.account.wall_s, mine.view.details.samples) == (142.0, 2 * 9 * 80)


def word(job_id, seq=0):
    event = Heartbeat(job_id=job_id, writer="w", seq=seq, attempt=0, rank=0, time=NOW - 9)
    return encode(event) + b"\n"


def test_no_replica_takes_in_more_jobs_than_their_owner_may_hold(replicas):
    """Whoever is sent a job of a replica that is full says so; what that one has already goes on."""
    few = [Settings(shard=each.store.shard, limits=Limits(jobs=3)) for each in replicas]
    services = [Service(each.store, few[n], clock=lambda: NOW) for n, each in enumerate(replicas)]
    own, sent_to, other = services
    theirs = [name for n in range(60) if owner(name := f"full-{n}") == 0]
    for job_id in theirs[:3]:
        assert sent_to.ingest(word(job_id)).accepted == 1
    with pytest.raises(BusyError, match="the replica with --shard 0/3 holds 3 jobs"):
        sent_to.ingest(word(theirs[3]))
    assert sent_to.ingest(word(theirs[0], 1)).accepted == 1
    follow(own)
    for service in (*services, *services):
        service.elsewhere.exchange(len(service.roster))
    for service in (sent_to, other):
        with pytest.raises(BusyError, match="holds 3 jobs"):
            service.ingest_events(b"".join(map(word, theirs)))
    assert other.ingest(word(theirs[2], 1)).accepted == 1
    follow(own)
    assert own.job_count == 3
    own.elsewhere.exchange(2)
    other.elsewhere.exchange(0)
    assert other.ingest(word(theirs[3])).accepted == 1


def test_repeats_at_several_replicas_at_once_are_kept_once(replicas):
    """Overlapping segments of one writer, sent to all replicas at the same time: each number counts once."""
    job_id = JOBS[0]

    def send(job):
        service, seqs = job
        where = {"job_id": job_id, "writer": "w", "attempt": 0, "rank": 0}
        lines = [raw_line(Heartbeat(seq=seq, time=1e9 + seq, **where)) for seq in seqs]
        return len(service.store.append(Segment(job_id, "w", lines), NOW).events)

    jobs = [(service, range(n, n + 20)) for n in range(0, 100, 5) for service in replicas]
    random.Random(3).shuffle(jobs)
    with ThreadPoolExecutor(9) as pool:
        kept = sum(pool.map(send, jobs))
    held = sorted(e.seq for batch in replicas[0].store.events(job_id) for e in batch)
    assert held == list(range(115))
    assert kept == 115


def test_what_the_follower_meets_again_counts_once(replicas, story):
    """A job that is folded while segments are on their way has each of them once, whatever comes first."""
    job_id = JOBS[1]
    own = replicas[owner(job_id)]
    other = replicas[(owner(job_id) + 1) % 3]
    bodies = list(story(job_id).bodies().values())
    other.ingest(bodies[0])
    own.ingest(bodies[1])  # folds bodies[0] from the store, before the follower meets it
    follow(own)
    other.ingest(bodies[2])
    follow(own)
    for body in bodies[3:]:
        own.ingest(body)
    follow(own)
    follow(own)
    assert own.page(job_id, NOW).view.details.samples == 2 * 9 * 80


def test_a_snapshot_of_a_replica_fits_what_comes_after(database_url, replicas, story):
    """A job restored from a snapshot made between two segments on their way has each of them once."""
    job_id = JOBS[2]
    index = owner(job_id)
    own, other = replicas[index], replicas[(index + 1) % 3]
    bodies = list(story(job_id).bodies().values())
    other.ingest(bodies[0])
    follow(own)
    own.ingest(bodies[1])
    other.ingest(bodies[2])
    own.upkeep.save_snapshots(0)
    for body in bodies[3:]:
        other.ingest(body)
    own.store.close()
    with closing(Store(database_url, Shard(index, 3))) as store:
        again = Service(store, Settings(shard=store.shard), clock=lambda: NOW)
        follow(again)
        assert again.page(job_id, NOW).view.details.samples == 2 * 9 * 80
        follow(again)
        assert again.page(job_id, NOW).view.account.wall_s == 142.0


@pytest.mark.parametrize(
    ("shard", "said"),
    [
        (Shard(1, 3), "with --shard 1/3"),
        (Shard(3, 4), "into 3 shards, not 4"),
        (None, "another exporter is using"),
    ],
)
@pytest.mark.usefixtures("replicas")
def test_replicas_that_do_not_fit_together_are_refused(database_url, shard, said):
    """The same share twice, another number of shares, or no share at all beside replicas."""
    with pytest.raises(StoreError, match=said):
        Store(database_url, shard)


def test_a_replica_beside_an_exporter_without_shares_is_refused(database_url):
    """Who has the database for itself shares it with nobody."""
    with closing(Store(database_url)), pytest.raises(StoreError, match="without --shard"):
        Store(database_url, Shard(0, 3))


def test_shares_need_a_database_that_can_be_shared(tmp_path):
    """An SQLite file belongs to one exporter."""
    with pytest.raises(StoreError, match="PostgreSQL"):
        Store(str(tmp_path / "ett"), Shard(0, 3))


def told_of(job):
    return job["samples"], job["wall_s"]


def test_three_replicas_of_which_one_is_killed(exporters, database_url, story, eventually):
    """A killed replica's jobs are whole when it returns, with what others took in meanwhile."""

    def start(index):
        return exporters("--database", database_url, "--shard", f"{index}/3")

    running = [start(index) for index in range(3)]
    stories = {job_id: story(job_id) for job_id in JOBS}
    bodies = [(job_id, body) for job_id in JOBS for body in stories[job_id].bodies().values()]
    killed = owner(JOBS[0])
    for number, (_, body) in enumerate(bodies[: len(bodies) // 2]):
        running[number % 3].send(body).raise_for_status()
    running[killed].process.send_signal(signal.SIGKILL)
    running[killed].process.wait(60)
    alive = [each for index, each in enumerate(running) if index != killed]
    for number, (_, body) in enumerate(bodies):
        alive[number % 2].send(body).raise_for_status()
    running[killed] = start(killed)
    for job_id in JOBS:
        own = running[owner(job_id)]
        eventually(lambda own=own, job_id=job_id: own.http.get(f"/api/v1/jobs/{job_id}").status_code == 200)
        eventually(lambda own=own, job_id=job_id: told_of(own.job(job_id)) == (2 * 9 * 80, 142.0))
    elsewhere = next(each for index, each in enumerate(running) if index != owner(JOBS[0]))
    said = elsewhere.http.get(f"/api/v1/jobs/{JOBS[0]}").json()["error"]
    assert said.endswith(f"it is one of the replica with --shard {owner(JOBS[0])}/3")
    shown = [each.http.get("/api/v1/jobs").json()["jobs"] for each in running]
    assert sorted(job["job_id"] for jobs in shown for job in jobs) == JOBS
    for each in running:
        each.process.send_signal(signal.SIGTERM)
    assert [each.process.wait(60) for each in running] == [0, 0, 0]
