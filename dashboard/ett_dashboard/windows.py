"""The trailing windows that pages look at: how long they are, and their words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.words import HOUR_S

DAY_S = 24 * HOUR_S
WINDOWS_S: Mapping[str, float] = {
    "1h": HOUR_S,
    "24h": DAY_S,
    "7d": 7 * DAY_S,
    "30d": 30 * DAY_S,
    "90d": 90 * DAY_S,
}
"""How long each window is, in seconds."""
WITHIN: Mapping[str, str] = {
    "1h": "the last hour",
    "24h": "the last 24 hours",
    "7d": "the last 7 days",
    "30d": "the last 30 days",
    "90d": "the last 90 days",
}
