"""The accounting: a streaming fold of events into the partition of a job's wall time."""

from ett_core.accounting.account import AttemptAccount, FailureAccount, JobAccount, Stretch

__all__ = ["AttemptAccount", "FailureAccount", "JobAccount", "Stretch"]
