"""HTML that the app draws itself holds nothing from a job but text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from ett_dashboard import frames, markup
from ett_dashboard.partition import partition_table
from ett_dashboard.rows import Job, JobDetail

HOSTILE = "\"><script>x</script><img src=x onerror=x>'&"


class Tags(HTMLParser):
    """Collects the tags of a piece."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def job(**fields) -> JobDetail:
    common = {"job_id": "j/1", "state": "training", "start": 0.0, "end": 1.0, "wall_s": 1.0, "components": {}}
    return JobDetail(**{**common, **fields})


@pytest.mark.parametrize(
    "piece",
    [
        markup.job_head(job(job_name=HOSTILE, team=HOSTILE, accelerators=2, accelerator_type=HOSTILE), 1.0),
        markup.job_head(job(job_name="x", state=HOSTILE), 1.0),
        markup.attention([job(job_name=HOSTILE)], 1.0),
        markup.versions(job(labels={HOSTILE: HOSTILE})),
        markup.purpose_of_job(job(labels={"purpose": "publishing", "publishes": HOSTILE})),
        markup.unreachable("The exporter", HOSTILE, 4.0),
        markup.from_metrics(HOSTILE),
        markup.lacking(HOSTILE),
        markup.empty("t", [HOSTILE], HOSTILE),
        markup.tiles([(HOSTILE, HOSTILE, HOSTILE)]),
    ],
)
def test_words_of_a_job_never_become_tags(piece):
    tags = Tags(piece)
    assert not tags.found & {"script", "img"}
    assert "onerror" not in tags.attributes
    assert "<script>x</script>" in tags.text


def test_a_job_in_trouble_is_linked_by_its_whole_identity():
    link = markup.attention([Job(job_id="a/b@1", state="lost", start=0, end=1, wall_s=1, components={})], 1.0)
    assert 'href="job?id=a%2Fb%401"' in link


def test_the_partition_table_sums_groups_and_whole():
    table = Tags(partition_table(frames.partition({"training": 2.0, "data_wait": 1.0}))).text
    assert "Effectivetraining whose effect survives2.0 s2.066.7 %" in table
    assert table.endswith("Wall time3.0 s3.0100.0 %")


def test_a_banner_says_how_old_the_figures_are():
    assert "What you see is 1 m 5 s old." in markup.unreachable("The exporter", "nothing answers", 65.0)
    assert "Nothing was read so far." in markup.unreachable("The exporter", "nothing answers", None)


def test_a_job_says_what_it_is_there_for_where_that_is_not_training():
    assert markup.purpose_of_job(job()) == ""
    told = Tags(markup.purpose_of_job(job(labels={"purpose": "publishing", "publishes": "dlrm"}))).text
    assert told.startswith("This job publishes the model of dlrm: it trains nothing")
    assert "is evaluation" in markup.purpose_of_job(job(purpose="evaluation"))  # as metrics tell it
