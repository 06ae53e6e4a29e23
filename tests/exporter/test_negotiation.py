"""Format and encoding are what the scraper asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_exporter.negotiation import OPENMETRICS, TEXT, content_type, wants_gzip

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html", TEXT),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; q=0", TEXT),
        ("application/openmetrics-text; version=2.0.0", TEXT),
        ("text/plain;q=1, application/openmetrics-text;q=0.9", TEXT),
        ("APPLICATION/OPENMETRICS-TEXT", OPENMETRICS),
    ],
)
def test_the_format_that_is_wanted_most_is_chosen(accept, expected):
    assert content_type(accept) == expected


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip, deflate, br", True),
        ("identity", False),
        ("gzip;q=0.5, identity;q=1", False),
        ("gzip;q=nonsense", False),
        ("*;q=0", False),
        ("GZIP", True),
    ],
)
def test_gzip_is_sent_to_those_who_take_it(accepted, expected):
    assert wants_gzip(accepted) is expected


@given(st.text(max_size=60))
def test_no_header_is_an_error(header):
    assert content_type(header) in (TEXT, OPENMETRICS)
    assert wants_gzip(header) in (True, False)
