"""The lines of /metrics parse to exactly what prometheus_client's own encoder writes."""

from __future__ import annotations

import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ett_core.metrics import COUNTER, FAMILIES, SUMMARY
from ett_exporter.chunks import CHUNK_JOBS, Chunks, gzip_stream
from ett_exporter.text import EOF, JobText, family_of, head

LABELS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)
VALUES = st.floats(allow_nan=False) | st.integers(0, 10**15).map(float)


@st.composite
def jobs(draw):
    """Samples of a few jobs, hostile labels and all."""
    names = draw(
        st.lists(st.sampled_from([n for n in FAMILIES if n.startswith("ett_job_")]), unique=True, max_size=6)
    )
    labels = {name: draw(st.tuples(*[LABELS] * (len(FAMILIES[name].labels) - 1))) for name in names}
    ids = draw(st.lists(LABELS, unique=True, min_size=1, max_size=4))
    return {
        job_id: [
            (f"{name}{suffix}", labels[name], draw(_values(name, suffix)))
            for name in names
            for suffix in (("_count", "_sum") if FAMILIES[name].kind == SUMMARY else ("",))
        ]
        for job_id in ids
    }


def _values(name, suffix):
    if suffix == "_count":
        return st.integers(0, 10**9)
    return st.floats(0, 1e18) if FAMILIES[name].kind in (COUNTER, SUMMARY) else VALUES


class Reference:
    """The same samples as families of prometheus_client."""

    def __init__(self, samples_of_jobs):
        self._jobs = samples_of_jobs

    def collect(self):
        for name, described in FAMILIES.items():
            samples = [
                ((job_id, *labels), value)
                for job_id, job in self._jobs.items()
                for series, labels, value in job
                if family_of(series) == name
            ]
            if samples:
                yield self._family(name, described, samples)

    @staticmethod
    def _family(name, described, samples):
        if described.kind == SUMMARY:
            family = SummaryMetricFamily(name, described.help, labels=described.labels)
            for (labels, count), (_, total) in zip(samples[::2], samples[1::2], strict=True):
                family.add_metric(labels, count, total)
            return family
        kind = CounterMetricFamily if described.kind == COUNTER else GaugeMetricFamily
        family = kind(name, described.help, labels=described.labels)
        for labels, value in samples:
            family.add_metric(labels, value)
        return family


def chunks_of(samples_of_jobs) -> Chunks:
    chunks = Chunks()
    for job_id, samples in samples_of_jobs.items():
        chunks.put(job_id, samples)
    return chunks


def written(chunks: Chunks, *, openmetrics: bool) -> bytes:
    families = chunks.refresh()
    parts = [head(f, openmetrics=openmetrics) + b"".join(chunks.texts(f)) for f in FAMILIES if f in families]
    return b"".join(parts) + (EOF if openmetrics else b"")


def parsed(text: bytes, parse):
    """Families with their samples in no order of labels."""
    return [
        (f.name, f.type, f.documentation, [(s.name, dict(s.labels), s.value) for s in f.samples])
        for f in parse(text.decode())
    ]


@given(jobs())
def test_text_parses_to_what_the_reference_encoder_writes(samples_of_jobs):
    registry = CollectorRegistry()
    registry.register(Reference(samples_of_jobs))
    ours = written(chunks_of(samples_of_jobs), openmetrics=False)
    assert parsed(ours, parse_text) == parsed(generate_latest(registry), parse_text)


@given(jobs())
def test_openmetrics_parses_to_what_the_reference_encoder_writes(samples_of_jobs):
    registry = CollectorRegistry()
    registry.register(Reference(samples_of_jobs))
    ours = written(chunks_of(samples_of_jobs), openmetrics=True)
    assert parsed(ours, parse_openmetrics) == parsed(generate_openmetrics(registry), parse_openmetrics)


@pytest.mark.parametrize(("value", "text"), [(math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")])
def test_odd_numbers_are_written_as_prometheus_writes_them(value, text):
    lines = JobText("a").update([("ett_job_wall_seconds", (), value)])
    assert list(filter(None, lines)) == [f'ett_job_wall_seconds{{job_id="a"}} {text}\n'.encode()]


@pytest.mark.parametrize("name", ["100%", "%b", "%%s", "50%\0", "ü%(x)s"])
def test_signs_of_a_template_in_names_and_labels_stay_as_they_are(name):
    """Whatever a job or a component is called, only the value takes the place of a value."""
    shown = name.replace("\0", "\N{REPLACEMENT CHARACTER}")
    lines = JobText(name).update([("ett_job_component_seconds", (name,), 2.5), ("ett_job_step", (), 7)])
    assert b"".join(lines).decode() == (
        f'ett_job_component_seconds{{job_id="{shown}",component="{shown}"}} 2.5\n'
        f'ett_job_step{{job_id="{shown}"}} 7\n'
    )


def some(count: int, value: float = 1.0):
    return {f"job-{n}": [("ett_job_wall_seconds", (), value)] for n in range(count)}


def test_what_did_not_change_is_not_compressed_again():
    """The pieces of chunks in which nothing changed are the very same objects."""
    chunks = chunks_of(some(3 * CHUNK_JOBS))
    chunks.refresh()
    before = list(chunks.pieces("ett_job_wall_seconds"))
    chunks.put("job-0", [("ett_job_wall_seconds", (), 2.0)])
    chunks.refresh()
    after = list(chunks.pieces("ett_job_wall_seconds"))
    assert [a is b for a, b in zip(before, after, strict=True)] == [False, True, True]


@pytest.mark.parametrize("others", [0, CHUNK_JOBS - 1])
def test_a_family_that_a_job_has_no_more_leaves_its_lines(others):
    """It is there again once the job has it again; that of other jobs stays, whether few changed or most."""
    both = [("ett_job_step", (), 1.0), ("ett_job_wall_seconds", (), 1.0)]
    chunks, found = chunks_of({"other": both, "job": both}), []
    for samples in (both, both[1:], [], both):
        for job_id in ("job", *(f"more-{number}" for number in range(others))):
            chunks.put(job_id, samples)
        chunks.refresh()
        found.append(
            ["".join(map(bytes.decode, chunks.texts(f"ett_job_{name}"))) for name in ("step", "wall_seconds")]
        )
    counts = [[text.count('"job"') for text in texts] for texts in found]
    assert counts == [[1, 1], [0, 1], [0, 0], [1, 1]]
    assert all(text.count('"other"') == 1 for texts in found for text in texts)


def test_only_families_of_which_a_line_changed_are_written_again():
    """The text of another family is the very same object, however many jobs there are."""
    chunks = chunks_of(some(2))
    found = []
    for step in (1, 2):
        chunks.put("job-0", [("ett_job_wall_seconds", (), 1.0), ("ett_job_step", (), step)])
        chunks.refresh()
        found.append([next(chunks.texts(f"ett_job_{name}")) for name in ("step", "wall_seconds")])
    assert found[0][1] is found[1][1]
    assert [texts[0] for texts in found] == [b'ett_job_step{job_id="job-0"} %d\n' % step for step in (1, 2)]


def test_the_pieces_make_one_gzip_stream_of_one_member():
    """Clients that stop at the end of the first member get everything."""
    chunks = chunks_of(some(2 * CHUNK_JOBS + 1))
    chunks.refresh()
    texts = list(chunks.texts("ett_job_wall_seconds"))
    packed = gzip_stream(chunks.pieces("ett_job_wall_seconds"), texts)
    reader = zlib.decompressobj(31)
    assert reader.decompress(b"".join(packed)) == b"".join(texts)
    assert reader.eof
    assert reader.unused_data == b""


def test_jobs_that_left_leave_nothing_behind():
    chunks = chunks_of(some(300))
    for number in range(300):
        if number != 7:
            chunks.drop(f"job-{number}")
    chunks.refresh()
    assert b"".join(chunks.texts("ett_job_wall_seconds")) == b'ett_job_wall_seconds{job_id="job-7"} 1.0\n'
    assert chunks.series == 1


def test_a_place_that_came_free_is_taken_again():
    chunks = chunks_of(some(CHUNK_JOBS))
    chunks.drop("job-3")
    chunks.put("new", [("ett_job_wall_seconds", (), 1.0)])
    chunks.refresh()
    assert len(list(chunks.texts("ett_job_wall_seconds"))) == 1


def test_samples_in_any_order_keep_their_values():
    """Families that take turns are put together, each value with its own labels."""
    job = JobText("a")
    mixed = [("ett_job_step", 1.0), ("ett_job_component_seconds", 2.0), ("ett_job_attempt", 3.0)]
    for turn in (1.0, 10.0):
        samples = [
            *((name, ("x",) if "component" in name else (), value * turn) for name, value in mixed),
            ("ett_job_component_seconds", ("y",), 4.0 * turn),
        ]
        lines = job.update(samples)
        assert {family: text.decode() for family, text in zip(FAMILIES, lines, strict=True) if text} == {
            "ett_job_step": f'ett_job_step{{job_id="a"}} {1.0 * turn}\n',
            "ett_job_component_seconds": (
                f'ett_job_component_seconds{{job_id="a",component="x"}} {2.0 * turn}\n'
                f'ett_job_component_seconds{{job_id="a",component="y"}} {4.0 * turn}\n'
            ),
            "ett_job_attempt": f'ett_job_attempt{{job_id="a"}} {3.0 * turn}\n',
        }
