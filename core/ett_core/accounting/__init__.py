"""The accounting: a streaming fold of events into the partition of a job's wall time."""

from ett_core.accounting.account import AttemptAccount, FailureAccount, JobAccount, Stretch
from ett_core.accounting.job import JobFold
from ett_core.accounting.settings import Settings
from ett_core.accounting.state import STATES

__all__ = ["STATES", "AttemptAccount", "FailureAccount", "JobAccount", "JobFold", "Settings", "Stretch"]
