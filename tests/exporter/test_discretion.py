"""Secrets in what senders send: none is kept, whoever sends it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.events import AttemptStart, Decision, Evidence, Failure, PhaseEnd, decode, encode
from ett_exporter.answers import page_answer
from ett_exporter.ingest import read_lines
from ett_exporter.settings import Limits

SECRET = "hunter2Hunter2hunter2"
PLANTED = [
    f"export HF_TOKEN={SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"git clone https://me:{SECRET}@host/repo failed",
    f"GET /x?sig={SECRET}&page=1: 403",
    f"cannot connect with --password {SECRET}",
    f"pass\x1b[0mword={SECRET}",
    f"using ghp_{SECRET}",
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
]


def said(kind, seq, **words):
    return kind(job_id="j", writer="w", seq=seq, attempt=0, rank=0, time=1_764_000_000.0 + seq, **words)


def events(text):
    return [
        said(AttemptStart, 0, world_size=1),
        said(Evidence, 1, source="stderr", text=f"first line\n{text}\nlast line"),
        said(Failure, 2, exception=f"OSError: {text}", message=text),
        said(Decision, 3, what="retry", why=text),
        said(PhaseEnd, 4, phase="init", error=text),
    ]


@pytest.mark.parametrize("text", PLANTED)
def test_a_planted_secret_is_neither_stored_nor_told(service, text):
    """Whatever event a secret comes in, no line of the store and no answer holds it; the rest stays."""
    opened = service()
    body = b"".join(encode(event) + b"\n" for event in events(text))
    assert opened.ingest(body).accepted == 5
    assert opened.ingest(body).duplicates == 5
    stored = [event for batch in opened.store.events("j") for event in batch]
    page = opened.page("j", 1_764_000_100.0)
    told = json.dumps([encode(event).decode() for event in stored]) + repr(page_answer(page)) + repr(page)
    assert SECRET not in told
    assert "first line" in told
    assert "last line" in told


def test_lines_without_secrets_are_kept_to_the_byte():
    """A line in which nothing is found stays as it was sent, colours and unknown fields and all."""
    line = encode(said(Evidence, 1, source="stderr", text="\x1b[31mRuntimeError\x1b[0m: tokens per second"))
    line = line[:-1] + b', "later" : 1}'
    (kept,), _ = read_lines(line, Limits())
    assert kept.raw == line


def test_fields_of_later_versions_survive_beside_a_secret():
    """Where a secret is taken out of a line, what this version does not know of it stays."""
    line = encode(said(Evidence, 1, source="stderr", text=PLANTED[0]))[:-1] + b',"later":[1,{"x":2.5}]}'
    (kept,), _ = read_lines(line, Limits())
    assert json.loads(kept.raw)["later"] == [1, {"x": 2.5}]
    assert decode(kept.raw) == kept.event
    assert kept.event.text == "export HF_TOKEN=***"


@given(st.text(max_size=60), st.sampled_from(PLANTED), st.text(max_size=60))
def test_what_was_looked_through_once_stays_as_it_is(before, text, after):
    """Looking through a line again changes nothing, so that a line that is sent on is the same line."""
    text = (before + "\n" + text + "\n" + after).encode("utf-8", "ignore").decode()
    (once,), _ = read_lines(encode(said(Evidence, 1, source="stderr", text=text)), Limits())
    (twice,), _ = read_lines(once.raw, Limits())
    assert twice.event == once.event
    assert SECRET not in once.event.text
