"""What a line means that no table knows: a thing and a trouble together, and where it was raised. Pure.

Never certain: words tell what happened to what, not that it was the cause. What follows from a fault
elsewhere (a peer that is gone, a wait in a collective) is a cascade here too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ett_core.failures.notions import notions
from ett_core.failures.rule import CASCADE, ROOT, TEARDOWN
from ett_core.failures.speakers import spoken


class Meaning(NamedTuple):
    """The class that a line suggests, and whether it may be the root."""

    failure_class: str
    role: str


class Sense(NamedTuple):
    """A line that names `things`, each in one of the ways given, means `failure_class`."""

    failure_class: str
    things: tuple[str, ...]
    """Notions that must all be named; of `a|b` one."""
    never: tuple[str, ...] = ()
    """Notions of which none may be named."""
    role: str = ROOT
    raised_only: bool = False
    """Only of an exception or last words: elsewhere the words are too common."""

    def holds(self, named: frozenset[str]) -> bool:
        """Whether these notions mean it."""
        return all(not named.isdisjoint(one.split("|")) for one in self.things) and named.isdisjoint(
            self.never
        )


SENSES: tuple[Sense, ...] = (
    Sense("gpu_oom", ("gpu", "used up", "memory")),
    Sense("time_limit", ("time given", "reached|killed")),
    Sense("preempted", ("preempted",)),
    Sense("evicted", ("evicted",)),
    Sense("maintenance", ("maintenance",)),
    Sense("gpu_ecc", ("ecc", "uncorrected")),
    Sense("nvlink_fault", ("nvlink", "failed|uncorrected|down")),
    Sense("gpu_lost", ("gpu", "off the bus")),
    Sense("cuda_driver", ("gpu", "driver", "failed|unlike|absent|invalid|down|used up|misuse")),
    Sense(
        "gpu_hardware",
        ("gpu", "hardware", "failed|down|uncorrected|stuck|hardware"),
        ("compiler", "collective", "checkpoint"),
    ),
    Sense("gpu_busy", ("gpu", "busy"), raised_only=True),
    Sense("gpu_app_fault", ("gpu", "misuse"), ("setting", "compiler", "collective")),
    Sense("collective_mismatch", ("collective", "unlike"), ("checkpoint",)),
    Sense("port_in_use", ("port", "in use")),
    Sense("resource_limit", ("limit", "used up|failed|absent|late|reached")),
    Sense("shm_exhausted", ("shared memory", "used up|failed|disk|unreachable")),
    Sense("compile_failure", ("compiler", "failed|absent|misuse|invalid"), ("unreachable",)),
    Sense("object_store", ("object store", "failed|unreachable|absent|late|damaged")),
    Sense("storage_full", ("disk", "used up"), ("memory",)),
    Sense("host_oom", ("memory", "used up|killed"), ("crash", "network", "checkpoint", "port")),
    Sense(
        "checkpoint_save_failed",
        ("checkpoint", "saving", "failed|absent|late|unreachable"),
        ("unlike", "damaged"),
    ),
    Sense("checkpoint_corrupt", ("checkpoint", "damaged"), ("setting",)),
    Sense("checkpoint_corrupt", ("checkpoint", "no file")),
    Sense(
        "checkpoint_incompatible", ("checkpoint", "unlike|absent|invalid"), ("object store", "unreachable")
    ),
    Sense("checkpoint_incompatible", ("checkpoint", "reading", "failed"), ("object store", "unreachable")),
    Sense("nan_loss", ("number", "loss", "failed|invalid|absent|damaged|killed|number"), raised_only=True),
    Sense("rendezvous_failure", ("meeting", "unreachable|late|failed|gone|unlike|absent"), ("service",)),
    Sense("collective_timeout", ("collective", "late"), role=CASCADE),
    Sense("storage_io", ("file", "io trouble")),
    Sense("environment_error", ("file", "denied")),
    Sense("node_failure", ("machine fault",)),
    Sense("node_failure", ("node", "down"), ("module", "setting", "file", "launcher")),
    Sense("peer_failure", ("collective|peer", "gone|unreachable"), ("launcher",), role=CASCADE),
    Sense("network_fault", ("network", "failed|gone|down|unreachable|absent|late")),
    Sense("dataloader_failure", ("loader", "gone|late|killed|failed"), ("damaged",)),
    Sense("data_corrupt", ("sample", "damaged")),
    Sense("data_corrupt", ("sample", "unread"), ("checkpoint", "setting"), raised_only=True),
    Sense("service_error", ("service", "unreachable|late|gone"), raised_only=False),
    Sense("user_cancelled", ("user", "killed|job"), raised_only=False),
    Sense("native_crash", ("crash", "crashed")),
    Sense(
        "environment_error",
        ("module", "absent|unlike|invalid|failed"),
        ("sample", "setting"),
        raised_only=False,
    ),
    Sense("config_error", ("setting", "invalid|absent|failed"), raised_only=True),
    Sense("rendezvous_failure", ("connecting", "late|unreachable"), raised_only=True),
    Sense("external_stop", ("stop",), role=TEARDOWN),
    Sense("hang", ("job", "stuck"), role=CASCADE),
)
"""Meanings in the order in which they are tried."""

_SAVES_CHECKPOINT = (
    r"\bin _?(?:\w{1,40}_)?save_\w{0,40}(?:checkpoint|ckpt|state|pretrained)"
    r"|\b(?:save|write)_(?:ckpt|checkpoint)\(|state_dict_saver\.py|\btorch\.save\(|zipfile_writer"
)
_READS_CHECKPOINT = (
    r"\bin _?(?:\w{1,40}_)?(?:re)?(?:load|stor\w{1,3}|sume)_"
    r"\w{0,40}(?:checkpoint|ckpt|state_dict|from)|state_dict_loader\.py"
)
_OF_PLACES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(places, re.ASCII), failure_class)
    for places, failure_class in (
        (r"torch/_inductor/|torch/_dynamo/|triton/compiler|torch/utils/cpp_extension", "compile_failure"),
        (_SAVES_CHECKPOINT, "checkpoint_save_failed"),
        (_READS_CHECKPOINT, "checkpoint_incompatible"),
        (
            r"/(?:pil|pyarrow|decord|cv2|webdataset|torchvision/io|librosa)/|/soundfile",
            "data_corrupt",
        ),
        (r"/(?:omegaconf|hydra|jsonargparse)/|/pydantic|argparse\.py", "config_error"),
        (
            r"/(?:boto3|botocore|s3fs|gcsfs|adlfs|minio|oss2)/|/(?:google/cloud|azure)/storage/",
            "object_store",
        ),
        (r"distributed/rendezvous\.py|elastic/rendezvous/", "rendezvous_failure"),
    )
)
"""Code that stands in the last frames of a traceback, and what an exception there means."""

_IN_A_FILE = re.compile(
    r"fsspec/implementations/(?:local|cached)|/shutil\.py|/tempfile\.py|\b(?:f|fp|fd|fh|file|buf\w{0,9})\.(?:write|read|flush|close)\("
    r"|\bopen\(|torch/serialization\.py",
    re.ASCII | re.IGNORECASE,
)
_OF_THE_PROGRAM = re.compile(
    r"\b(?:Name|Attribute|Type|Index|NotImplemented|UnboundLocal|Syntax|Indentation|ZeroDivision|Recursion)Error\b",
    re.ASCII,
)
"""Exceptions of Python that tell of the program itself, whatever their messages name."""
_PLAIN = re.compile(
    r"\b(?:(?:Runtime|Value|Assertion|Key|OS|IO|Environment|System)Error|Exception)(?=: )", re.ASCII
)
"""Exceptions whose type says that something failed and no more."""
_CAUGHT = re.compile(
    r"\bCaught \w{1,60} in (?:DataLoader worker )?(?:process|thread|rank|replica) \d{1,6}\b", re.ASCII
)
"""Says where an exception was raised that is printed below."""
_CODE = re.compile(
    r"\bgpu[-_]?\d[\w.-]{0,80}|<[^<>\n]{0,200}>"
    r"|(?:\b[\w.]{1,40}=[^\s,=]{1,80},? ){2,60}\b[\w.]{1,40}=[^\s,=]{1,80}"
    r"|\[(?:'[^'\n]{0,200}', ){1,200}'[^'\n]{0,200}'\]|\{'(?:[^{}\n]|\{[^{}\n]{0,400}\}){0,400}\}"
    r"|\S{1,200}\.(?:cc|cpp|cu|h|hpp|py|go|rs|c):\d{1,6}\b:?|\b[\w-]{1,80}\.(?:py|sh|ipynb)\b"
    r"|(?<![\w/.])[a-z][\w-]{0,62}/[a-z][\w.-]{0,100}-\d{1,5}\b(?!/)",
    re.ASCII,
)
"""Hosts, pods, command lines, lists of settings, objects, places and programs: named after much else."""
_STATE = re.compile(
    r"(?:^|[|=\s:])(NODE_FAIL|BOOT_FAIL|PREEMPTED|TIMEOUT|DEADLINE|OUT_OF_MEMORY|REVOKED)(?:[|\s]|$)",
    re.ASCII,
)
_STATES = {
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "PREEMPTED": "preempted",
    "REVOKED": "preempted",
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "OUT_OF_MEMORY": "host_oom",
}
"""How schedulers write the state of a job in a table."""
_NONE_OF = re.compile(
    r"\b(?:0|no|zero) (?:[\w-]{1,20} ){0,2}(?:errors?|failures?|faults?)\b|\bnot active\b",
    re.IGNORECASE | re.ASCII,
)
_UNREAL = frozenset({"supposed", "harmless"})


def meaning(text: str, *, raised: bool) -> Meaning | None:
    """What a line suggests; None where its words say nothing of a failure.

    Args:
        text: the line, without advice.
        raised: the line is an exception, or the last word of a process.

    >>> meaning("acme.StorageFault: snapshot 7 has a bad checksum", raised=True)
    Meaning(failure_class='checkpoint_corrupt', role='root')
    >>> meaning("the remote worker has closed the connection", raised=True).role
    'cascade'
    >>> meaning("step 7 loss 2.0", raised=False) is None
    True
    """
    if _OF_THE_PROGRAM.search(text):
        return None
    if state := _STATE.search(text):
        return Meaning(_STATES[state[1]], ROOT)
    if _CAUGHT.search(text):
        return None
    named = notions(_PLAIN.sub(" ", _CODE.sub(" ", spoken(text))))
    if not raised and (_NONE_OF.search(text) or not named.isdisjoint(_UNREAL)):
        return None
    held = (sense for sense in SENSES if (raised or not sense.raised_only) and sense.holds(named))
    return next((Meaning(sense.failure_class, sense.role) for sense in held), None)


def meaning_of_place(text: str, frames: str) -> Meaning | None:
    """What an exception suggests by where it was raised, whatever it says; None where that tells nothing.

    Args:
        text: the exception.
        frames: the last lines of its traceback.

    >>> meaning_of_place("KeyError: 'w'", 'File "/a/train.py", line 3, in load_checkpoint').failure_class
    'checkpoint_incompatible'
    """
    if _OF_THE_PROGRAM.search(text):
        return None
    where = frames.lower()
    held = (name for places, name in _OF_PLACES if places.search(where))
    return next((Meaning(name, ROOT) for name in held), None)


def in_a_save(frames: str) -> bool:
    """Whether the last frames of a traceback save a checkpoint.

    >>> in_a_save("    torch.save({'model': state}, path)")
    True
    """
    return re.search(_SAVES_CHECKPOINT, frames.lower(), re.ASCII) is not None


def in_a_file(frames: str) -> bool:
    r"""Whether the last frames of a traceback read or write a file.

    >>> in_a_file('  File "/a/io.py", line 68, in atomic_save\\n    f.write(buffer)')
    True
    """
    return _IN_A_FILE.search(frames) is not None
