"""The service over a real SQLite file, in this process."""

from __future__ import annotations

import msgspec
import pytest

from ett_core.accounting import JobFold
from ett_core.details import JobDetails
from ett_core.events import CheckpointDurable, Clock, Progress, encode
from ett_exporter.answers import page_answer
from ett_exporter.errors import InDoubtError, UnfitError
from ett_exporter.exposition import Exposition
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.ingest import Line, Segment
from ett_exporter.jobs import BusyError
from ett_exporter.ledger import Ledger
from ett_exporter.live import LiveJob
from ett_exporter.settings import Limits
from ett_exporter.views import details_view

NOW = 1_764_000_200.0


def send(service, story):
    for body in story.bodies().values():
        service.ingest(body)


def test_a_job_is_accounted_for_as_the_fold_of_its_events_says(service, story):
    """What the service answers is exactly the account of the events that it was sent."""
    told = story("job/a")
    opened = service()
    send(opened, told)
    fold = JobFold("job/a")
    fold.add(told.events)
    assert opened.page("job/a", NOW).view.account == fold.account(NOW)


def test_a_restart_changes_no_answer(service, story):
    """A service that is opened again over the same file answers the same as before."""
    first = service()
    for name in ("a", "b"):
        send(first, story(name))
    before = [msgspec.json.encode(page_answer(first.page(name, NOW))) for name in ("a", "b")]
    again = service()
    assert [msgspec.json.encode(page_answer(again.page(name, NOW))) for name in ("a", "b")] == before


@pytest.mark.parametrize("is_split", [False, True])
def test_of_what_two_processes_tell_under_one_name_each_number_counts_once(service, story, is_split):
    """Samples, steps and saves too, live as after a start; which of two counts, the account says."""
    told = story("a")
    other = [
        msgspec.structs.replace(event, time=event.time - 0.125) for event in told.events if event.seq > 2
    ]
    opened = service()
    send(opened, told)
    bodies = [encode(event) for event in other]
    for body in bodies if is_split else [b"\n".join(bodies)]:
        assert opened.ingest_events(body).accepted == body.count(b"\n") + 1
        opened.view("a", NOW)
    fold, details = JobFold("a"), JobDetails.of_events([*told.events, *other])
    fold.add([*told.events, *other])
    for each in (opened, service()):
        page = each.page("a", NOW)
        assert page.view.account == fold.account(NOW)
        assert page.view.details == details_view(details, page.view.account)
        assert page.throughput == details.throughput.read()
        assert page.checkpoints == details.checkpoints.latest


def test_order_of_arrival_and_repeats_change_no_answer(service, story):
    """Segments that come backwards, twice and overlapping give the answer of the plain order."""
    opened = service()
    send(opened, story("plain"))
    for body in reversed(story("mixed").bodies().values()):
        lines = body.splitlines(keepends=True)
        for start in range(len(lines) - 1, -1, -2):
            opened.ingest(b"".join(lines[max(start - 2, 0) : start + 1]))
        assert opened.ingest(body).accepted == 0
    plain, mixed = (page_answer(opened.page(name, NOW)) for name in ("plain", "mixed"))
    renamed = msgspec.json.encode(mixed).replace(b"mixed", b"plain")
    assert msgspec.json.decode(renamed) == msgspec.json.decode(msgspec.json.encode(plain))


def test_a_wrong_clock_is_recorded_once_and_corrected(service, story):
    """An offset beyond 2 s becomes one clock event; the account is then that of a right clock."""
    opened = service()
    send(opened, story("right"))
    for body in story("wrong", NOW - 200 + 50).bodies().values():
        for _ in range(3):
            opened.ingest(body, clock_offset_s=50.1)
    events = [e for batch in opened.store.events("wrong") for e in batch]
    clocks = [e for e in events if isinstance(e, Clock)]
    writers = {e.writer for e in events} - {e.writer for e in clocks}
    assert sorted(c.of_writer for c in clocks) == sorted(writers)
    right, wrong = (opened.page(name, NOW).view.account for name in ("right", "wrong"))
    assert wrong.components == pytest.approx(right.components, abs=0.2)
    assert wrong.start == pytest.approx(right.start, abs=0.2)
    before, after = (opened.page(name, NOW) for name in ("right", "wrong"))
    assert [c.time for c in after.checkpoints] == pytest.approx([c.time for c in before.checkpoints], abs=0.2)
    assert after.evidence.keys() == before.evidence.keys()
    for attempt, lines in before.evidence.items():
        corrected = [line.time for line in after.evidence[attempt]]
        assert corrected == pytest.approx([line.time for line in lines], abs=0.2)
    assert after.view.details.last_durable.time == pytest.approx(
        before.view.details.last_durable.time, abs=0.2
    )


@pytest.mark.parametrize("offset_s", [1.9, -1.9, None])
def test_a_right_clock_is_not_recorded(service, story, offset_s):
    """Up to 2 s of difference, or no word of it, leaves no clock event."""
    opened = service()
    for body in story("a").bodies().values():
        opened.ingest(body, clock_offset_s=offset_s)
    assert not [e for batch in opened.store.events("a") for e in batch if isinstance(e, Clock)]


def test_a_job_beyond_the_limit_is_refused_and_the_known_ones_go_on(service, story):
    """One job too many is refused; jobs that are known are taken in as before."""
    opened = service(limits=Limits(jobs=1))
    first, second = story("a"), story("b")
    send(opened, first)
    with pytest.raises(BusyError, match="limit"):
        send(opened, second)
    assert opened.ingest(next(iter(first.bodies().values()))).accepted == 0
    assert [view.account.job_id for view in opened.views(NOW)] == ["a"]


def test_an_ended_job_leaves_metrics_after_its_grace_and_stays_in_the_api(service, story):
    """Within the grace an ended job has series; afterwards it has none, but its page."""
    opened = service(now=NOW, ended_grace_s=300.0)
    send(opened, story("ended"))
    send(opened, story("running", ended=False))
    shown = {
        after_s: {view.account.job_id for view in opened.views(NOW) if opened.is_shown(view, NOW + after_s)}
        for after_s in (299, 301)
    }
    assert shown == {299: {"ended", "running"}, 301: {"running"}}
    assert opened.page("ended", NOW + 301) is not None


def test_an_ended_job_is_let_go_of_and_comes_back_when_it_is_asked_for(service, story):
    """Its windows go on as before, its page is whole, and a late event counts."""
    opened = service(ended_grace_s=0.0)
    told = story("a")
    late = told.events.pop()
    send(opened, told)
    (job,) = opened.jobs.live()
    day, moments = 86_400.0, (500.0, 3650.0, 3700.0, 80_000.0, 86_450.0, 90_000.0)
    for after_s in moments:
        now = NOW + after_s
        opened.upkeep.close_jobs(now)
        got = job.view(now)
        plain = LiveJob("a", NOW, opened.jobs.past("a")).view(now)
        assert (got.account, got.windows) == (plain.account, plain.windows)
    opened.upkeep.close_jobs(NOW + 2 * day)
    assert job.unload(NOW + 2 * day)
    assert opened.page("a", NOW + 2 * day) == LiveJob("a", NOW, opened.jobs.past("a")).page(NOW + 2 * day)
    opened.upkeep.close_jobs(NOW + 2 * day)
    told.events = [late]
    send(opened, told)
    again = LiveJob("a", NOW, opened.jobs.past("a")).view(NOW + 3 * day)
    assert job.view(NOW + 3 * day).account == again.account


def test_silence_alone_changes_the_state_and_what_is_unsaved(service, story):
    """With no new event a job trains, stalls, is lost and in the end has failed, each with its age."""
    opened = service()
    send(opened, story("a", ended=False))
    spoke = opened.view("a", NOW).account.last_event_at
    progress = opened.view("a", NOW).account.last_progress_at
    found = {}
    for silent_s in (50, 70, 599, 601, 6 * 3600 + 1):
        account = opened.view("a", spoke + silent_s).account
        found[silent_s] = (account.state, account.state_since)
        assert sum(account.components.values()) == pytest.approx(account.wall_s)
    assert found[50][0] == "training"
    assert found[70] == found[599] == ("stalled", progress)
    assert found[601] == ("lost", spoke)
    assert found[6 * 3600 + 1][0] == "failed"
    trained, silent = (opened.view("a", spoke + at).account.unsaved_exposure_s for at in (10, 50))
    assert silent == pytest.approx(trained + 40)


def test_the_fleet_adds_up_the_windows_of_its_jobs(service, story):
    """Fleet component seconds are the sum over jobs of their held seconds times accelerators."""
    opened = service()
    for name in ("a", "b"):
        send(opened, story(name))
    views = opened.views(NOW)
    ledger = Ledger()
    for view in views:
        ledger.put(view)
    samples = list(fleet_samples(ledger))
    held = {
        labels[2]: value
        for name, labels, value in samples
        if name == "ett_fleet_component_seconds" and labels[0] == "1h"
    }
    account = views[0].account
    assert held == pytest.approx({name: 2 * 2 * s for name, s in account.components.items()})
    ratios = {of[:2]: value for name, of, value in samples if name == "ett_fleet_effective_ratio"}
    assert ratios["1h", "job"] == pytest.approx(account.ett_percent / 100)
    assert ratios["1h", "accelerator"] == pytest.approx(account.ett_percent / 100)


def test_a_job_says_what_its_windows_alone_reached(service, story):
    """Null where it has no time in one."""
    opened = service()
    send(opened, story("a"))
    whole = pytest.approx(opened.view("a", NOW).account.ett_percent)
    within = page_answer(opened.page("a", NOW)).ett_percent_within
    assert within == {"1h": whole, "24h": whole, "7d": whole}
    within = page_answer(opened.page("a", NOW + 2 * 3600)).ett_percent_within
    assert within == {"1h": None, "24h": whole, "7d": whole}


def test_a_job_that_cannot_be_accounted_for_takes_no_other_with_it(service, story, monkeypatch):
    """Its last view stays, the others are as new as ever, and /metrics says that one is broken."""
    opened = service()
    for name in ("good", "bad"):
        send(opened, story(name, ended=False))
    opened.views(NOW)
    account = JobFold.account

    def broken(fold, now):
        if fold.job_id == "bad":
            raise ZeroDivisionError
        return account(fold, now)

    monkeypatch.setattr(JobFold, "account", broken)
    assert {view.account.job_id: view.account.as_of for view in opened.views(NOW + 50)} == {
        "good": NOW + 50,
        "bad": NOW,
    }
    assert "ett_exporter_broken_jobs 1" in Exposition(opened).answer().body.decode()
    monkeypatch.setattr(JobFold, "account", account)
    assert {view.account.as_of for view in opened.views(NOW + 90)} == {NOW + 90}
    assert opened.broken_jobs == 0


def test_readers_within_a_second_share_a_view(service, story):
    """A view is made once a second at most, and anew as soon as something came."""
    opened = service()
    bodies = list(story("a").bodies().values())
    opened.ingest(bodies[0])
    first = opened.views(NOW)[0]
    assert opened.views(NOW + 0.9)[0] is first
    assert opened.views(NOW + 1.1)[0].account.as_of == NOW + 1.1
    opened.ingest(bodies[1])
    assert opened.views(NOW + 1.2)[0].account.as_of == NOW + 1.2


@pytest.mark.parametrize("later_s", [0.0, 3450.0, 3700.0])
def test_windows_are_those_of_the_fold(service, story, later_s):
    """A window that holds the job, cuts it, or lies behind it has the seconds that the fold gives."""
    told = story("a")
    opened = service()
    send(opened, told)
    fold = JobFold("a")
    fold.add(told.events)
    now = NOW + later_s
    window = opened.page("a", now).view.windows["1h"]
    assert window == pytest.approx(fold.window(now - 3600, now, now))
    assert bool(window) == (later_s < 3700)


def test_an_event_that_cannot_be_accounted_for_costs_no_other(service, story, caplog):
    """Its line is rejected with the reason, counted and logged; a restart reads the others again."""
    told = story("job", ended=False)
    about = {"job_id": "job", "writer": "w", "attempt": 1, "rank": 1}
    saved = [
        CheckpointDurable(step=40 if n % 50 else 2**70, time=told.events[-1].time + n / 100, seq=n, **about)
        for n in range(200)
    ]
    segment = Segment("job", "w", [Line(event.seq, encode(event), event) for event in saved])
    fold = JobFold("job")
    fold.add([*told.events, *(event for event in saved if event.step == 40)])
    first = service()
    send(first, told)
    answer = first._accept([segment], [], None)
    assert (answer.accepted, answer.duplicates, answer.rejected_total) == (196, 0, 4)
    assert [each.line for each in answer.rejected] == [0, 50, 100, 150]
    assert "OverflowError" in answer.rejected[0].reason
    assert "job job: " in caplog.text
    assert first.page("job", NOW).view.account == fold.account(NOW)
    assert first._accept([segment], [], None).duplicates == 200
    assert first.stats.rejected_lines == 4
    assert service().page("job", NOW).view.account == fold.account(NOW)


def many_writers(count, job_id="wide"):
    """One body of so many ranks of a job, each its own writer."""
    said = {"job_id": job_id, "attempt": 0, "seq": 0, "step": 10, "steps": 10}
    events = [Progress(**said, writer=f"w{rank}", rank=rank, time=NOW - 100.0) for rank in range(count)]
    return b"".join(encode(event) + b"\n" for event in events)


def test_the_writers_of_one_job_in_one_body_are_made_durable_together(service):
    """A relay may send for thousands of ranks at once: not each waits for the disk alone."""
    opened, written = service(now=NOW), []
    commits = opened.store._arrivals._commits
    write = commits._write

    def counted(arrivals):
        written.append(len(arrivals))
        return write(arrivals)

    commits._write = counted
    accepted = opened.ingest_events(many_writers(600))
    assert (accepted.accepted, sum(written), len(written)) == (600, 600, 3)
    assert opened.stats.segments == 600
    assert len(opened.page("wide", NOW).nodes) == 0
    assert opened.ingest_events(many_writers(600)).duplicates == 600


def test_where_only_a_part_of_the_writers_is_kept_all_is_right_once_it_is_sent_again(service):
    """The sender is told to come again; what was kept counts once."""
    opened = service(now=NOW)
    opened.ingest_events(many_writers(40, "clean"))
    commits = opened.store._arrivals._commits
    write = commits._write

    def partly(arrivals):
        if any(arrival.segment.writer == "w7" for arrival in arrivals):
            raise UnfitError("value too long")
        return write(arrivals)

    commits._write = partly
    with pytest.raises(InDoubtError, match="only a part is kept: value too long"):
        opened.ingest_events(many_writers(40))
    commits._write = write
    again = opened.ingest_events(many_writers(40))
    assert (again.accepted, again.duplicates) == (1, 39)
    wide, clean = (opened.page(job_id, NOW).view for job_id in ("wide", "clean"))
    assert msgspec.structs.replace(wide.account, job_id="clean") == clean.account
    assert wide.details == clean.details
