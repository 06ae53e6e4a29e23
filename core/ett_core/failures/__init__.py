"""Why an attempt ended: a deterministic classifier of logs, exits and signals, without a network."""

from ett_core.failures.attempt import diagnose
from ett_core.failures.classes import CLASSES, FailureClass
from ett_core.failures.judge import Diagnosis, Evidence, judge
from ett_core.failures.scan import Sighting, Where, read_line, scan

__all__ = [
    "CLASSES",
    "Diagnosis",
    "Evidence",
    "FailureClass",
    "Sighting",
    "Where",
    "diagnose",
    "judge",
    "read_line",
    "scan",
]
