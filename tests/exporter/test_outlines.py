"""Long timelines in few stretches: what is kept of them adds up like the whole."""

from __future__ import annotations

import pytest

from ett_core.components import TRAINING
from ett_exporter.outlines import KEPT_S, Outlines

LIMIT = 12


class Asked:
    """Pages of a service at moments that move on, and from when on their timelines were asked for."""

    def __init__(self, service, now):
        self.service, self.now, self.begins = service, now, []

    def read(self, job_id, begin):
        self.begins.append(begin)
        return self.service.page(job_id, self.now, begin)


@pytest.fixture
def asked(service, story):
    opened = service()
    for body in story("a", ended=False).bodies().values():
        opened.ingest(body)
    return Asked(opened, opened.clock())


def seconds(page):
    return sum(share for stretch in page.timeline for _, share in stretch.shares) / 1e9


def test_only_what_came_since_is_read_again(asked):
    """The second page asks for the end alone, is as short, and still adds up to the wall time."""
    outlines = Outlines(asked.read, LIMIT)
    first = outlines.page("a")
    asked.now += 1
    second = outlines.page("a")
    assert asked.begins[0] is None
    assert asked.begins[1] > first.view.account.start
    for page in (first, second):
        assert seconds(page) == pytest.approx(page.view.account.wall_s, abs=1e-6)
        assert len(page.timeline) <= LIMIT + len(page.view.account.attempts) + 2
    by_name = sum(dict(stretch.shares).get(TRAINING, 0) for stretch in second.timeline) / 1e9
    assert by_name == pytest.approx(second.view.account.components[TRAINING], abs=1e-6)


def test_an_outline_is_made_anew_in_the_end(asked):
    """What came late shows after a while."""
    outlines = Outlines(asked.read, LIMIT)
    outlines.page("a")
    asked.now += KEPT_S
    outlines.page("a")
    assert asked.begins[-1] is None


def test_a_failure_makes_an_outline_anew(asked, story):
    """A failure may take back training that an outline calls kept."""
    outlines = Outlines(asked.read, LIMIT)
    outlines.page("a")
    asked.now += 1
    page = outlines.page("a")
    assert asked.begins[-1] is not None
    more = [attempt.attempt for attempt in page.view.account.attempts]
    later = story("a").bodies()
    lines = b"".join(later.values()).replace(b'"attempt":1', b'"attempt":2')
    again = lines.replace(b'"writer":"', b'"writer":"again-')
    asked.service.ingest_events(again)
    page = outlines.page("a")
    assert len(page.view.account.attempts) > len(more)
    assert asked.begins[-1] is None
    assert seconds(page) == pytest.approx(page.view.account.wall_s, abs=1e-6)


def test_a_short_timeline_is_shown_in_full(asked):
    """Within the limit nothing is joined, and nothing kept."""
    outlines = Outlines(asked.read)
    assert outlines.page("a").timeline == asked.service.page("a", asked.now).timeline
    outlines.page("a")
    assert asked.begins == [None, None]
