"""What the query API answers about failures of many jobs, as immutable rows.

Fields that this version does not know are ignored. Times are Unix seconds, names that end in `_s`
hold seconds, in `_ratio` 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.failures import Diagnosis
from ett_core.fleet.losses import Losses
from ett_core.fleet.nodes import Node
from ett_core.fleet.outbreaks import Outbreak
from ett_core.fleet.recurrence import Recurrence
from ett_core.fleet.regressions import Regression
from ett_dashboard.rows import FailureRow


class JobFailure(FailureRow, frozen=True, kw_only=True):
    """One failure of a job with its diagnosis and what it cost."""

    id: str
    ending: str
    retry: str
    recurrence: Recurrence
    losses: Losses
    diagnosis: Diagnosis


class FailureOfJob(JobFailure, frozen=True, kw_only=True):
    """One failure of the fleet, with the job that had it; `cost` is null where no prices are set."""

    lost_accelerator_s: float
    cost: float | None = None
    accelerator_type: str = ""
    job_id: str
    job_name: str = ""
    cluster: str = ""
    team: str = ""
    model: str = ""
    accelerators: int = 0

    @property
    def title(self) -> str:
        """The name that people gave the job, else its identity."""
        return self.job_name or self.job_id


class FailureDetail(FailureOfJob, frozen=True, kw_only=True):
    """One failure with the lines that tell of it; `alike`: the ids of those before it in its row."""

    as_of: float
    alike: Sequence[str] = ()


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Some failures together, and their shares of all; `jobs` is None where nobody counted them."""

    key: str
    count: int
    jobs: int | None = None
    lost_ratio: float | None = None
    count_ratio: float = 0.0
    cumulative_ratio: float | None = None
    unsaved_s: float = 0.0
    stalled_s: float = 0.0
    recovery_s: float = 0.0
    lost_accelerator_s: float
    cost: float | None = None
    ttr_median_s: float | None = None
    first: float = 0.0
    last: float = 0.0


class FailureBucket(msgspec.Struct, frozen=True, kw_only=True):
    """Failures between two moments by the key of their group."""

    begin: float
    end: float
    counts: Mapping[str, int]
    lost_accelerator_s: Mapping[str, float]


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/failures`; `is_listed`: whether it tells of failures one by one at all.

    `missing`: jobs that are not read yet.
    """

    as_of: float
    failures: Sequence[FailureOfJob]
    is_listed: bool = True
    total: int
    next_offset: int | None = None
    lost_accelerator_s: float
    cost: float | None = None
    groups: Sequence[FailureGroup] = ()
    over_time: Sequence[FailureBucket] = ()
    missing: int = 0


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/nodes`."""

    as_of: float
    nodes: Sequence[Node]
    total: int = 0


class Regressions(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/regressions`."""

    as_of: float
    begin: float
    end: float
    runs: int
    failures: int
    components: Sequence[Regression]
    outbreaks: Sequence[Outbreak]
