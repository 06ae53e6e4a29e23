"""What of a job's output is kept, and what of it is not."""

from __future__ import annotations

import time

import pytest

from ett_trainer_hooks.launcher.torchrun import exits_told
from ett_trainer_hooks.redaction import TEXT_LIMIT, redacted, redacted_parts


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2hunter2",
        "export HF_TOKEN=hunter2hunter2",
        '{"api_key": "hunter2hunter2"}',
        "Authorization: Bearer hunter2hunter2",
        "authorization=Basic hunter2hunter2",
        "git clone https://me:hunter2hunter2@host/repo",
        "GET /x?access_token=hunter2hunter2&page=1",
        "using ghp_hunter2hunter2",
        "aws_secret_access_key = hunter2hunter2",
        "AccountKey=hunter2hunter2==;EndpointSuffix=core.windows.net",
        "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIyaHVudGVyMiJ9.hunter2hunter2_x",
        "key AIzahunter2hunter2hunter2",
        "x" * 200 + "_TOKEN_FILE_2: 'hunter2hunter2'",
    ],
)
def test_a_secret_does_not_leave_the_node(text):
    """Passwords, tokens and keys are replaced, whatever their form."""
    assert "hunter2" not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize(
    "text", ["tokens: 512 per sample", "RuntimeError: shape [2, 3]", "tcp://127.0.0.1:29500 refused"]
)
def test_what_is_no_secret_stays(text):
    """Words that look alike are left as they are."""
    assert redacted(text) == text


def test_a_text_is_cut_to_its_limit_in_bytes():
    """Also where characters are longer than a byte."""
    assert len(redacted("ä" * 10_000).encode()) <= TEXT_LIMIT


def test_no_secret_hides_across_two_parts_and_all_parts_are_short():
    """Also a private key over many lines, and a line that is longer than a part."""
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "hunter2Hunter2hunter2\n" * 900
        + "-----END RSA PRIVATE KEY-----"
    )
    text = "x" * 8180 + " password=hunter2\n" + key + "\n" + "ö" * 9000 + "\nlast"
    parts = redacted_parts(text)
    assert all(len(part.encode()) <= TEXT_LIMIT for part in parts)
    assert "hunter2" not in "".join(parts)
    assert parts[-1].endswith("last")


@pytest.mark.parametrize(
    "unit", ["a-", "token-", "a://", "password", "a.", "authorization ", "bearer ", "exitcode :   "]
)
def test_hostile_text_takes_linear_time(unit):
    """Twice the text takes about twice the time: no pattern tries every pair of places."""

    def seconds(length):
        text = (unit * length)[:length]
        began_s = time.process_time()
        redacted_parts(text)
        exits_told([text])
        return time.process_time() - began_s

    short_s = max(min(seconds(1 << 14) for _ in range(3)), 1e-4)
    assert min(seconds(1 << 17) for _ in range(2)) < 8 * 4 * short_s
