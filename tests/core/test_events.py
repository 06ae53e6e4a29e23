import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core import events
from ett_core.events import EVENT_KINDS, AnyEvent, Event, decode, encode
from ett_core.step_times import LAST_BUCKET

TYPES = {kind.kind: kind for kind in typing.get_args(AnyEvent)}
ENVELOPE = ("v", "job_id", "writer", "seq", "attempt", "rank", "node", "time")
FIELDS = {
    "attempt_start": (
        "world_size accelerators accelerator_type process_started_at allocated_at resumed_step labels "
        "versions config_hash"
    ),
    "phase_begin": "phase track step",
    "phase_end": "phase track step resumed_step error",
    "first_batch": "step",
    "progress": "step steps samples data_wait_s step_seconds",
    "checkpoint": "step mode wait_previous_s blocking_s staging_s upload_s bytes",
    "checkpoint_durable": "step mode bytes duration_s",
    "checkpoint_failed": "step mode message",
    "compile": "graph code stage_seconds native_compile_s recompile_reason inputs symbols remote_requests",
    "cache": "cache hits misses bypasses bytes saved_s remote_requests tuned",
    "counters": "values",
    "decision": "what why values",
    "evidence": "source text observed_at",
    "failure": "exception message exit_code signal first_error_at of_rank",
    "heartbeat": "",
    "attempt_end": "status exit_code",
    "job_end": "status",
    "clock": "of_writer offset_s",
}
GOOD = (
    b'{"v":1,"job_id":"team/run-1","writer":"w","seq":0,"attempt":0,"rank":0,"node":"n0","time":1764000000.0,'
    b'"kind":"heartbeat"}'
)


def test_the_kinds_are_frozen_and_each_has_one_type():
    assert tuple(FIELDS) == EVENT_KINDS == tuple(TYPES)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_the_field_names_of_a_kind_are_frozen(kind):
    assert TYPES[kind].__struct_fields__ == (*ENVELOPE, *FIELDS[kind].split())


def limited(annotated: object) -> st.SearchStrategy[float]:
    """Floats within the limits that the annotation declares."""
    limits = typing.get_args(annotated)[1]
    low = next(limit for limit in (limits.gt, limits.ge) if limit is not None)
    return st.floats(low, limits.lt, exclude_min=limits.gt is not None, exclude_max=True, allow_nan=False)


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, exclude_min=True, exclude_max=True)


CONFIGS = st.dictionaries(
    st.text(), st.none() | st.booleans() | st.integers(-(2**31), 2**31) | numbers(-1e300, 1e300) | st.text()
)


def of_type(annotation: object) -> st.SearchStrategy:
    """Values of the annotated types that events are made of."""
    known = {
        events.UnixSeconds: limited(events.UnixSeconds),
        events.Seconds: limited(events.Seconds),
        events.Name: st.text(max_size=256),
        events.Label: st.text(max_size=1024),
        events.Step: st.integers(0, 2**62 - 1),
        float: numbers(-1e300, 1e300),
        str: st.text(),
        int: st.integers(-(2**31), 2**31),
        dict[str, str]: st.dictionaries(st.text(), st.text()),
        dict[str, float]: st.dictionaries(st.text(), numbers(-1e300, 1e300)),
        events.StepSeconds: st.builds(
            events.StepSeconds,
            count=st.integers(0, 2**40 - 1),
            sum=limited(events.Seconds),
            max=limited(events.Seconds),
            buckets=st.dictionaries(st.integers(0, LAST_BUCKET), st.integers(0, 2**40 - 1)),
        ),
        events.CompileInput: st.builds(
            events.CompileInput,
            source=st.text(max_size=1024),
            size=st.lists(st.integers(-1, 2**31)).map(tuple),
            traits=st.text(max_size=1024),
        ),
        events.TunedKernel: st.builds(
            events.TunedKernel,
            kernel=st.text(max_size=1024),
            tuned_s=limited(events.Seconds),
            config=CONFIGS,
            candidates=st.none() | st.lists(CONFIGS, max_size=3).map(tuple),
            searched=st.booleans(),
        ),
        type(None): st.none(),
    }
    if annotation in known:
        return known[annotation]
    if typing.get_origin(annotation) is tuple:
        return st.lists(of_type(typing.get_args(annotation)[0]), max_size=3).map(tuple)
    if typing.get_origin(annotation) is typing.Annotated:
        return limited(annotation) if typing.get_args(annotation)[0] is float else st.integers(-1, 2**31 - 1)
    return st.one_of(*map(of_type, typing.get_args(annotation)))


def soup(kind: type[Event]) -> st.SearchStrategy[Event]:
    hints = typing.get_type_hints(kind, include_extras=True)
    own = {name: of_type(hints[name]) for name in kind.__struct_fields__ if name not in ("v", "job_id")}
    return st.builds(kind, job_id=st.from_regex(events.JOB_ID_PATTERN, fullmatch=True), **own)


@pytest.mark.parametrize("kind", EVENT_KINDS)
@given(data=st.data())
def test_an_event_reads_back_as_it_was_written(kind, data):
    event = data.draw(soup(TYPES[kind]))
    line = encode(event)
    assert b"\n" not in line
    assert decode(line) == event
    assert decode(line).kind == kind


def test_the_good_line_of_the_cases_below_is_good():
    assert decode(GOOD).job_id == "team/run-1"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"v":1', b'"v":2', "protocol version 2 is not known here (this reader speaks 1)"),
        (b'"v":1', b'"v":"1"', "Expected `int`, got `str` - at `$.v`"),
        (b'"team/run-1"', b'""', "job_id '' is not 1 to 128 characters of A-Z a-z 0-9 . _ : / @ -"),
        (b'"team/run-1"', b'"a b"', "job_id 'a b' is not 1 to 128 characters of A-Z a-z 0-9 . _ : / @ -"),
        (b'"team/run-1"', b'"' + b"x" * 129 + b'"', "job_id 'xxxxxxxxxx"),
        (b'"team/run-1"', b"7", "Expected `str`, got `int` - at `$.job_id`"),
        (b'"job_id":"team/run-1",', b"", "Object missing required field `job_id`"),
        (b'"writer":"w",', b"", "Object missing required field `writer`"),
        (
            b'"writer":"w"',
            b'"writer":"' + b"w" * 257 + b'"',
            "Expected `str` of length <= 256 - at `$.writer`",
        ),
        (b'"seq":0,', b"", "Object missing required field `seq`"),
        (b'"seq":0', b'"seq":-1', "Expected `int` >= 0 - at `$.seq`"),
        (b'"seq":0', b'"seq":1.5', "Expected `int`, got `float` - at `$.seq`"),
        (b'"attempt":0,', b"", "Object missing required field `attempt`"),
        (b'"attempt":0', b'"attempt":-1', "Expected `int` >= 0 - at `$.attempt`"),
        (b'"rank":0,', b"", "Object missing required field `rank`"),
        (b'"rank":0', b'"rank":-2', "Expected `int` >= -1 - at `$.rank`"),
        (b'"n0"', b"null", "Expected `str`, got `null` - at `$.node`"),
        (b',"time":1764000000.0', b"", "Object missing required field `time`"),
        (b"1764000000.0", b"0", "Expected `float` > 0.0 - at `$.time`"),
        (b"1764000000.0", b"NaN", "JSON is malformed: invalid character"),
        (b"1764000000.0", b"1764000000000.0", "Expected `float` < 4000000000.0 - at `$.time`"),
        (b',"kind":"heartbeat"', b"", "Object missing required field `kind`"),
        (b'"heartbeat"', b'"nap"', "Invalid value 'nap' - at `$.kind`"),
    ],
)
def test_an_error_of_the_envelope_says_what_is_wrong(old, new, reason):
    assert old in GOOD
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the reason is compared below
        decode(GOOD.replace(old, new))
    assert reason in str(caught.value)


def test_fields_that_are_not_known_are_ignored():
    assert decode(GOOD[:-1] + b',"colour":"red"}') == decode(GOOD)


@pytest.mark.parametrize("kind", TYPES.values(), ids=EVENT_KINDS)
def test_an_event_cannot_be_changed(kind):
    assert kind.__struct_config__.frozen


def test_a_field_at_its_default_is_not_written():
    assert msgspec.json.decode(encode(decode(GOOD))).keys() == {
        "kind", "job_id", "writer", "seq", "attempt", "rank", "node", "time", "v",
    }  # fmt: skip
