"""What is known of failures in the words that every report and page uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping

RETRY_WORDS: Mapping[str, str] = {
    "likely": "may well succeed as it is",
    "with_change": "will fail again until something is changed",
    "after_remediation": "may succeed on other hardware, or once this is repaired",
    "unknown": "unknown",
}
"""Whether the same job may succeed if it is started again; what stands after "it"."""
DOMAIN_WORDS: Mapping[str, str] = {
    "workload": "the job itself",
    "infrastructure": "the hardware, network or storage",
    "platform": "the platform: scheduler, containers, limits, services",
    "unknown": "not known",
}
"""Whose a failure is."""
REPEATED_WORDS: Mapping[str, str] = {
    "stop": "stop trying until it is changed",
    "exclude_node": "start again without the node",
}
"""What a failure that came again adds to the advice of its class."""
SMALLEST_SHOWN = 1e-6


def chance_words(probability: float) -> str:
    """How probable by chance, in words.

    >>> chance_words(0.0042), chance_words(1e-12)
    ('probability 0.0042', 'probability below 0.000001')
    """
    if probability < SMALLEST_SHOWN:
        return "probability below 0.000001"
    return f"probability {probability:.2g}"
