"""The jobs in memory: whose turn it is, what is new, and that nobody is forgotten."""

from __future__ import annotations

import math
import threading

import pytest

from ett_core import events as ev
from ett_exporter.errors import StoreError
from ett_exporter.exposition import LATE_S, TICK_EVERY_S, YOUNG_S, Exposition
from ett_exporter.settings import Limits

NOW = 1_764_000_200.0
NAMES = ("a", "b", "c")


@pytest.fixture
def opened(service, story):
    running = service(now=NOW)
    for name in NAMES:
        tell(running, story(name, ended=False))
    return running


def tell(running, told):
    for body in told.bodies().values():
        running.ingest(body)


def as_of(running):
    """As of when the known view of each job is, after `NOW`; long ago where there is none."""
    views = {job.job_id: job.known_view for job in running.jobs.live()}
    return {name: -math.inf if view is None else view.account.as_of - NOW for name, view in views.items()}


def test_the_oldest_views_are_renewed_first(opened):
    """Without time for more, each round renews the one that waited longest; nobody is passed over."""
    roster = opened.roster
    roster.renew(NOW, 0.0)
    assert set(as_of(opened).values()) == {0.0}
    ticks = iter(range(1000))
    roster._monotonic = lambda: float(next(ticks))
    order = []
    for turn in range(1, 7):
        before = as_of(opened)
        roster.renew(NOW + 10 * turn, 2.0)
        order.append({name for name, at in as_of(opened).items() if at != before[name]})
    assert [len(renewed) for renewed in order] == [1] * 6
    assert order[:3] == order[3:]


def test_a_clock_that_is_set_back_keeps_no_view_as_it_was(opened, story):
    """What comes after the clock was put back by an hour is in the next answer, not an hour later."""
    opened.roster.renew(NOW, 1.0)
    tell(opened, story("a"))
    back = NOW - 3600.0
    opened.roster.renew(back, 1.0)
    assert set(as_of(opened).values()) == {-3600.0}
    opened.roster.renew(back + 5.0, 1.0)
    assert set(as_of(opened).values()) == {-3595.0}
    states = {view.account.job_id: view.account.finished for view in opened.roster.since(0)[1]}
    assert states == {"a": True, "b": False, "c": False}


def test_a_job_without_a_view_gets_one_even_where_there_is_no_time(opened, story):
    """Whoever was told of is there in the next answer; where nobody waits for it, later."""
    opened.roster.renew(NOW, 0.0)
    tell(opened, story("new"))
    opened.roster.renew(NOW, 0.0, meet_for_s=0.0)
    assert as_of(opened)["new"] < 0
    opened.roster.renew(NOW, 0.0)
    assert as_of(opened)["new"] == 0


def test_a_scraper_gets_what_is_ready_while_it_waits_and_the_rest_next_time(opened, story):
    """Of six jobs whose first views take 2 s each, three within 6 s of 10, the others in the next answer."""
    for name in ("d", "e", "f"):
        tell(opened, story(name, ended=False))
    passed_s = 0.0
    for job in opened.jobs.live():

        def slowly(now, make=job.view_at_once):
            nonlocal passed_s
            passed_s += 2.0
            return make(now)

        job.view_at_once = slowly
    opened.roster._monotonic = lambda: passed_s
    exposition = Exposition(opened, lambda: passed_s)
    answers = [lines_of(exposition.answer(within_s=10.0).body.decode()) for _ in range(2)]
    assert [len(jobs) for jobs in answers] == [3, 6]


def test_an_answer_waits_for_first_views_that_another_thread_makes(opened, story):
    """Two readers at once: neither leaves out a job that the other one is at."""
    tell(opened, story("new"))
    job = next(job for job in opened.jobs.live() if job.job_id == "new")
    entered, go_on = threading.Event(), threading.Event()
    make = job.view_at_once

    def slowly(now):
        entered.set()
        assert go_on.wait(30)
        return make(now)

    job.view_at_once = slowly
    other = threading.Thread(target=opened.roster.renew, args=(NOW, 1.0))
    other.start()
    assert entered.wait(30)
    found = []
    reader = threading.Thread(target=lambda: found.append(Exposition(opened).answer().body))
    reader.start()
    reader.join(0.05)
    assert not found
    go_on.set()
    for thread in (other, reader):
        thread.join(30)
    assert b'ett_job_wall_seconds{job_id="new"}' in found[0]


def test_only_what_is_new_is_told_again(opened, story):
    """`since` gives each changed view once, in the order in which they came."""
    roster = opened.roster
    roster.renew(NOW, 1.0)
    number, views = roster.since(0)
    assert [view.account.job_id for view in views] == list(NAMES)
    assert roster.since(number) == (number, [])
    tell(opened, story("d"))
    roster.renew(NOW, 1.0)
    assert [view.account.job_id for view in roster.since(number)[1]] == ["d"]


def test_a_job_that_cannot_be_read_keeps_its_turn(opened, monkeypatch):
    """An error reaches the reader; afterwards the job is renewed as ever."""
    opened.roster.renew(NOW, 1.0)
    job = opened.jobs.live()[0]

    def broken(_now):
        raise StoreError("locked")

    monkeypatch.setattr(job, "view_at_once", broken)
    with pytest.raises(StoreError):
        opened.roster.renew(NOW + 10, 1.0)
    monkeypatch.undo()
    opened.roster.renew(NOW + 20, 1.0)
    assert set(as_of(opened).values()) == {20.0}


def test_a_job_that_comes_back_counts_no_second_time(opened, story):
    """What a job had counted before it left memory is not counted again when it is told something late."""
    told = story("gone")
    late = told.events.pop()
    tell(opened, told)
    opened.roster.renew(NOW, 1.0)
    with opened.roster.sums() as ledger:
        counted = dict(ledger.final.counted)
    week_later = NOW + 8 * 86_400
    opened.clock = lambda: week_later
    opened.upkeep.close_jobs(week_later)
    opened.upkeep.close_jobs(week_later)
    assert "gone" not in as_of(opened)
    told.events = [late]
    tell(opened, told)
    assert "gone" in as_of(opened)
    opened.roster.renew(week_later, 1.0)
    with opened.roster.sums() as ledger:
        others = {key: amount for key, amount in ledger.final.counted.items() if key.component == "training"}
    assert others == {key: amount for key, amount in counted.items() if key.component == "training"}


@pytest.mark.parametrize("view_s", [0.002, 0.01, 0.05, 0.2])
def test_no_view_is_older_than_documented_where_nobody_scrapes(service, blank_story, view_s):
    """At most ten seconds, and twice as long as one view of each job takes."""
    opened, jobs, passed_s = service(now=NOW), 60, 0.0
    for number in range(jobs):
        told = blank_story(f"job-{number}")
        told.tell(0.0, ev.FirstBatch)
        tell(opened, told)
    for job in opened.jobs.live():

        def slowly(now, make=job.view_at_once):
            nonlocal passed_s
            passed_s += view_s
            return make(now)

        job.view_at_once = slowly
    opened.clock = lambda: NOW + passed_s
    opened.roster._monotonic = lambda: passed_s
    exposition = Exposition(opened, lambda: passed_s)
    exposition.answer()
    oldest = 0.0
    while passed_s < 100.0:
        exposition.tick()
        passed_s += TICK_EVERY_S
        oldest = max(oldest, NOW + passed_s - opened.roster.oldest_as_of())
    assert YOUNG_S < oldest <= LATE_S + 2 * jobs * view_s + TICK_EVERY_S
    assert view_s > 0.01 or oldest < LATE_S


def test_a_backlog_that_comes_rank_by_rank_takes_a_tenth_of_the_time(opened, blank_story):
    """What is folded again from its history waits for its share; other jobs, and who asks for it, do not."""
    told = blank_story("behind")
    for second in range(0, 1000, 10):
        told.tell(float(second), ev.Progress, step=second, steps=10)
    late = told.events[5:50:10]
    told.events = [event for event in told.events if event not in late]
    tell(opened, told)
    roster, passed_s = opened.roster, 0.0
    roster.renew(NOW, 1.0)
    roster._monotonic = lambda: passed_s
    job = next(job for job in opened.jobs.live() if job.job_id == "behind")
    make = job.view_at_once

    def slowly(now):
        nonlocal passed_s
        passed_s += 1.0
        return make(now)

    job.view_at_once = slowly
    renewed = []
    for number, event in enumerate(late):
        told.events = [event]
        tell(opened, told)
        assert job.is_stale
        passed_s += 2.5
        roster.renew(NOW + 2 * number + 2, 100.0)
        assert {as_of(opened)[name] for name in NAMES} == {2 * number + 2}
        assert opened.roster.oldest_as_of() == NOW + as_of(opened)["behind"]
        renewed.append(as_of(opened)["behind"] == 2 * number + 2)
    assert renewed == [True, False, False, False, True]
    told.events = [late[0]]
    assert job.view(NOW + 100.0).account.as_of == NOW + 100.0


def test_the_first_view_of_a_backlog_is_made_for_who_waits_for_it(opened, blank_story):
    """Between answers it takes its share of the time only, and hinders nobody meanwhile."""
    told = blank_story("behind")
    for second in (*range(500, 1000, 10), *range(0, 500, 10)):
        told.tell(float(second), ev.Progress, step=second, steps=10)
    late = told.events[50:]
    told.events = told.events[:50]
    tell(opened, told)
    told.events = late
    tell(opened, told)
    opened.roster._anew_from_s = math.inf
    opened.roster.renew(NOW, 1.0, meet_for_s=0.0)
    assert as_of(opened) == {"behind": -math.inf, **dict.fromkeys(NAMES, 0.0)}
    opened.roster.renew(NOW + 1.0, 1.0, meet_for_s=30.0)
    assert set(as_of(opened).values()) == {1.0}


def lines_of(text):
    return {line.split('"')[1] for line in text.splitlines() if line.startswith("ett_job_wall_seconds{")}


def test_the_latest_jobs_are_left_out_beyond_the_limit_of_series_and_come_when_there_is_room(service, story):
    """Jobs are left out whole, counted, and shown once others have left."""
    limited = service(now=NOW, limits=Limits(series=110), ended_grace_s=0.0)
    for name in NAMES:
        tell(limited, story(name, ended=name == "a"))
    exposition = Exposition(limited)
    first = exposition.answer().body.decode()
    assert lines_of(first) == {"a", "b"}
    assert "ett_exporter_jobs_left_out 1\n" in first
    assert 'ett_exporter_jobs{shown="true"} 2\n' in first
    limited.clock = lambda: NOW + 1
    then = exposition.answer().body.decode()
    assert lines_of(then) == {"b", "c"}
    assert "ett_exporter_jobs_left_out 0\n" in then
