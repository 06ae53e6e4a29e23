"""Why an attempt ended: a deterministic classifier of logs, exits and signals, without a network."""

from ett_core.failures.attempt import diagnose
from ett_core.failures.classes import CLASSES, FailureClass
from ett_core.failures.judge import Diagnosis, Evidence, judge
from ett_core.failures.lines import Sighting, read_line
from ett_core.failures.scan import Where, scan

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
