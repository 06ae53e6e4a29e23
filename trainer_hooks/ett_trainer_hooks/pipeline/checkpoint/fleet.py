"""What other jobs have seen of failures, asked of the exporter: a start for a job that has seen none.

The rank that leads asks once, on a thread of its own, as rates of a fleet change slowly; nobody waits for
the answer, and without one the policy goes on with what is supposed. Needs no torch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from ett_core.credentials import TokenSource, bearer, token_source
from ett_core.interval_choice import Before, JobSeen, before_from_fleet
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy

PATH = "/api/v1/intervals?limit=300"
ANSWER_BYTES = 8 << 20
TIMEOUT_S = 10.0


class _Row(msgspec.Struct):
    job_id: str
    accelerators: int
    failures: int
    loop_s: float


class _Answer(msgspec.Struct):
    jobs: list[_Row]


def learn_from_fleet(
    policy: CheckpointPolicy,
    recorder: Recorder,
    otherwise: Before,
    *,
    exporter_url: str,
    token: TokenSource | None = None,
) -> threading.Thread:
    """Let the policy know what jobs of a like size have seen, once the exporter has said so.

    Args:
        policy: of the rank that leads.
        recorder: knows who this job is; is told where nobody answers.
        otherwise: what is supposed where there are no such jobs.
        exporter_url: such as `http://127.0.0.1:9410`.
        token: of a reader; that of the environment by default.
    """

    def ask() -> None:
        try:
            answer = asked(exporter_url, token or token_source())
            policy.learn(before_for(recorder.identity, answer, otherwise))
        except (OSError, ValueError, HTTPException) as error:
            recorder.decision("failures of other jobs are not reckoned with", f"{exporter_url}: {error}")

    thread = threading.Thread(target=ask, name="ett-fleet", daemon=True)
    thread.start()
    return thread


def before_for(identity: Identity, answer: bytes, otherwise: Before) -> Before:
    """What jobs of a like size as this one have seen, from an answer of the exporter.

    Raises:
        ValueError: that is no answer of an exporter.
    """
    others = jobs_seen(answer, but=identity.job_id)
    return before_from_fleet(others, identity.accelerators or identity.world_size or 1, otherwise)


def jobs_seen(answer: bytes, *, but: str) -> Sequence[JobSeen]:
    """The jobs of an answer, but one.

    Raises:
        ValueError: that is no answer of an exporter.
    """
    try:
        rows = msgspec.json.decode(answer, type=_Answer).jobs
    except msgspec.DecodeError as error:
        raise ValueError(f"the answer is not that of an exporter ({error})") from error
    return [
        JobSeen(failures=row.failures, train_s=row.loop_s, accelerators=row.accelerators)
        for row in rows
        if row.job_id != but
    ]


def asked(exporter_url: str, token: TokenSource) -> bytes:
    """What the exporter answers about the intervals of its jobs.

    Raises:
        OSError: nobody answers, or something else than 200.
        ValueError: that is no http or https address.
    """
    parts = urlsplit(exporter_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an exporter has an address such as http://127.0.0.1:9410")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path.rstrip("/") + PATH, headers=bearer(token()))
        response = connection.getresponse()
        body = response.read(ANSWER_BYTES)
    finally:
        connection.close()
    if response.status != 200:  # noqa: PLR2004 - OK
        raise ConnectionError(f"status {response.status} {response.reason}")
    return body
