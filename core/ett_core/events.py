"""What a training job says about itself: one immutable type per kind of event.

An event is one flat JSON object on one line. The same line is written to the journal, sent
over HTTP and used in tests. The types here are shared by every process (trainer, launcher,
exporter, command line); they do no I/O and hold no clock. Times are Unix seconds, durations
are seconds, sizes are bytes.

>>> event = decode(b'{"v":1,"job_id":"j","writer":"w","seq":0,"attempt":0,"rank":0,'
...                b'"node":"n0","time":1764000000.0,"kind":"progress","step":5,"steps":5}')
>>> event.kind, event.step, event.data_wait_s
('progress', 5, 0.0)
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, TypeAlias, Union

import msgspec

from ett_core.step_times import LAST_BUCKET

PROTOCOL_VERSION = 1
LAUNCHER_RANK = -1
MOST_LABELS = 64
"""Labels of an attempt, and `LABEL_CHARACTERS` those of a name or value, that every reader takes."""
LABEL_CHARACTERS = 1024
JOB_ID_PATTERN = re.compile(r"[A-Za-z0-9._:/@-]{1,128}")

UnixSeconds = Annotated[float, msgspec.Meta(gt=0, lt=4e9)]
Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]
Step = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
Summand = Annotated[int, msgspec.Meta(ge=0, lt=2**40)]
"""A count of which millions can be summed and still be kept in 64 bits."""
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Bucket = Annotated[int, msgspec.Meta(ge=0, le=LAST_BUCKET)]
Label = Annotated[str, msgspec.Meta(max_length=LABEL_CHARACTERS)]
Name = Annotated[str, msgspec.Meta(max_length=256)]
ConfigValue: TypeAlias = bool | int | float | str | None


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", omit_defaults=True):
    """The envelope that every event carries.

    `job_id` names the logical run across restarts. `writer` with `seq` is the key of
    de-duplication. `attempt` grows across every kind of restart. `rank` is the global rank,
    -1 for the launcher of a node. `time` is the moment described, not the moment of sending.
    """

    kind: ClassVar[str] = ""

    v: int = msgspec.field(default_factory=lambda: PROTOCOL_VERSION)
    job_id: str
    writer: Name
    seq: Count
    attempt: Count
    rank: Annotated[int, msgspec.Meta(ge=LAUNCHER_RANK, lt=2**31)]
    node: Name = ""
    time: UnixSeconds


class AttemptStart(Event, frozen=True, kw_only=True, gc=False, tag="attempt_start"):
    """An attempt exists; `accelerators` counts those held by the whole job."""

    kind: ClassVar[str] = "attempt_start"
    world_size: Count = 0
    accelerators: Count = 0
    accelerator_type: Label = ""
    process_started_at: UnixSeconds | None = None
    allocated_at: UnixSeconds | None = None
    resumed_step: Step | None = None
    labels: dict[str, str] = {}
    versions: dict[str, str] = {}
    config_hash: Label = ""


class PhaseBegin(Event, frozen=True, kw_only=True, gc=False, tag="phase_begin"):
    """A named piece of work begins on a track (a thread of work)."""

    kind: ClassVar[str] = "phase_begin"
    phase: Name
    track: Name = "main"
    step: Step | None = None


class PhaseEnd(Event, frozen=True, kw_only=True, gc=False, tag="phase_end"):
    """That piece of work is over, also when it raised (`error`)."""

    kind: ClassVar[str] = "phase_end"
    phase: Name
    track: Name = "main"
    step: Step | None = None
    resumed_step: Step | None = None
    error: str | None = None


class FirstBatch(Event, frozen=True, kw_only=True, gc=False, tag="first_batch"):
    """The first batch of this attempt begins to be consumed; `step` steps came before it."""

    kind: ClassVar[str] = "first_batch"
    step: Step | None = None


class StepSeconds(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Durations of the steps of one report, without their data wait.

    `buckets` are steps by the bucket of their duration, see `ett_core.step_times`; empty where the
    writer keeps none.
    """

    count: Summand
    sum: Seconds
    max: Seconds
    buckets: dict[Bucket, Summand] = {}


class Progress(Event, frozen=True, kw_only=True, gc=False, tag="progress"):
    """`steps` steps were completed since the last report, the latest is `step`."""

    kind: ClassVar[str] = "progress"
    step: Step
    steps: Count
    samples: float = 0
    data_wait_s: float = 0.0
    step_seconds: StepSeconds | None = None


class Checkpoint(Event, frozen=True, kw_only=True, gc=False, tag="checkpoint"):
    """What a save cost; its blocking time is also a `checkpoint` phase."""

    kind: ClassVar[str] = "checkpoint"
    step: Step
    mode: Label = "sync"
    wait_previous_s: Seconds = 0.0
    blocking_s: Seconds = 0.0
    staging_s: Seconds | None = None
    upload_s: Seconds | None = None
    bytes: Count | None = None


class CheckpointDurable(Event, frozen=True, kw_only=True, gc=False, tag="checkpoint_durable"):
    """The checkpoint of `step` would now survive the death of the whole job."""

    kind: ClassVar[str] = "checkpoint_durable"
    step: Step
    mode: Label = "sync"
    bytes: Count | None = None
    duration_s: Seconds | None = None


class CheckpointFailed(Event, frozen=True, kw_only=True, gc=False, tag="checkpoint_failed"):
    """The checkpoint of `step` will never be durable."""

    kind: ClassVar[str] = "checkpoint_failed"
    step: Step
    mode: Label = "sync"
    message: str = ""


class CompileInput(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tensor that a graph was compiled for.

    `source` is its name as torch's frame knows it, such as `L['x']`; `size` its sizes, one a dimension;
    `traits` what else must be the same for a graph to fit: dtype, device, whether it needs a gradient.
    """

    source: Label
    size: tuple[Whole, ...] = ()
    traits: Label = ""


class Compile(Event, frozen=True, kw_only=True, gc=False, tag="compile"):
    """One compilation, for detail views.

    `code` names the function; `inputs` are its tensors but for parameters, None where they are not
    known; `symbols` what the graph leaves open, as torch writes it: `L['x'].size()[0]`.
    """

    kind: ClassVar[str] = "compile"
    graph: Label = ""
    code: Label = ""
    stage_seconds: dict[str, float] = {}
    native_compile_s: Seconds | None = None
    recompile_reason: str | None = None
    inputs: tuple[CompileInput, ...] | None = None
    symbols: tuple[Label, ...] = ()
    remote_requests: Count | None = None


class TunedKernel(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A kernel that was measured with each configuration of its list.

    Or, where `searched`, with others from the best of its list on. `tuned_s` are seconds of compiling and
    measuring, as the compiler counts them; `config` is what won; `candidates` the list, where it is the
    program's own.
    """

    kernel: Label = ""
    tuned_s: Seconds
    config: dict[str, ConfigValue] = {}
    candidates: tuple[dict[str, ConfigValue], ...] | None = None
    searched: bool = False


class Cache(Event, frozen=True, kw_only=True, gc=False, tag="cache"):
    """Totals of one cache in this process so far; `tuned` is a kernel whose choice it has just been given."""

    kind: ClassVar[str] = "cache"
    cache: Label
    hits: Count = 0
    misses: Count = 0
    bypasses: Count = 0
    bytes: Count | None = None
    saved_s: Seconds | None = None
    remote_requests: Count | None = None
    tuned: TunedKernel | None = None


class Counters(Event, frozen=True, kw_only=True, gc=False, tag="counters"):
    """Named totals of this process so far."""

    kind: ClassVar[str] = "counters"
    values: dict[str, float] = {}


class Decision(Event, frozen=True, kw_only=True, gc=False, tag="decision"):
    """Something the pipeline decided, in words."""

    kind: ClassVar[str] = "decision"
    what: str
    why: str = ""
    values: dict[str, float] = {}


class Evidence(Event, frozen=True, kw_only=True, gc=False, tag="evidence"):
    """A line or fact that may explain a failure."""

    kind: ClassVar[str] = "evidence"
    source: Label
    text: str
    observed_at: UnixSeconds | None = None


class Failure(Event, frozen=True, kw_only=True, gc=False, tag="failure"):
    """Something ended this rank; `of_rank` when a launcher speaks for a dead one."""

    kind: ClassVar[str] = "failure"
    exception: str | None = None
    message: str | None = None
    exit_code: Whole | None = None
    signal: Whole | None = None
    first_error_at: UnixSeconds | None = None
    of_rank: Whole | None = None


class Heartbeat(Event, frozen=True, kw_only=True, gc=False, tag="heartbeat"):
    """Alive; nothing else to say."""

    kind: ClassVar[str] = "heartbeat"


class AttemptEnd(Event, frozen=True, kw_only=True, gc=False, tag="attempt_end"):
    """This attempt is over for the sender.

    `status` is one of `succeeded`, `failed`, `preempted`, `cancelled`, `timed_out`.
    """

    kind: ClassVar[str] = "attempt_end"
    status: Label
    exit_code: Whole | None = None


class JobEnd(Event, frozen=True, kw_only=True, gc=False, tag="job_end"):
    """Nothing will follow for this job."""

    kind: ClassVar[str] = "job_end"
    status: Label


class Clock(Event, frozen=True, kw_only=True, gc=False, tag="clock"):
    """The receiver found the clock of `of_writer` to be `offset_s` ahead of its own."""

    kind: ClassVar[str] = "clock"
    of_writer: Name
    offset_s: Annotated[float, msgspec.Meta(gt=-4e9, lt=4e9)]


AnyEvent: TypeAlias = Union[  # noqa: UP007 - msgspec needs the union as a run-time value
    AttemptStart,
    PhaseBegin,
    PhaseEnd,
    FirstBatch,
    Progress,
    Checkpoint,
    CheckpointDurable,
    CheckpointFailed,
    Compile,
    Cache,
    Counters,
    Decision,
    Evidence,
    Failure,
    Heartbeat,
    AttemptEnd,
    JobEnd,
    Clock,
]

EVENT_KINDS: tuple[str, ...] = (
    "attempt_start",
    "phase_begin",
    "phase_end",
    "first_batch",
    "progress",
    "checkpoint",
    "checkpoint_durable",
    "checkpoint_failed",
    "compile",
    "cache",
    "counters",
    "decision",
    "evidence",
    "failure",
    "heartbeat",
    "attempt_end",
    "job_end",
    "clock",
)

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    """One JSON object in UTF-8, without a newline."""
    return _encoder.encode(event)


def decode(line: bytes | str) -> AnyEvent:
    """The event on one line.

    Raises:
        ValueError: the line is no event; the message says why in one sentence
            (`msgspec.ValidationError` and `msgspec.DecodeError` are ValueErrors).
    """
    try:
        event = _decoder.decode(line)
    except RecursionError as error:
        raise ValueError("nested too deeply to be an event") from error
    if event.v != PROTOCOL_VERSION:
        msg = f"protocol version {event.v} is not known here (this reader speaks {PROTOCOL_VERSION})"
        raise ValueError(msg)
    if not JOB_ID_PATTERN.fullmatch(event.job_id):
        msg = f"job_id {event.job_id[:40]!r} is not 1 to 128 characters of A-Z a-z 0-9 . _ : / @ -"
        raise ValueError(msg)
    return event
