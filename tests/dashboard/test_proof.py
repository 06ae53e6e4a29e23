"""The list of what the app promises names tests that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_behind_a_promise_is_there():
    told = subprocess.run(
        [sys.executable, ROOT / "scripts" / "app-proof", "--list"], check=True, capture_output=True, text=True
    ).stdout
    tests = re.findall(r"^ {4}(\S+?)(?:::(\w+))?$", told, re.MULTILINE)
    assert len(tests) >= len(re.findall(r"^- ", told, re.MULTILINE)) > 10
    for file, name in tests:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not name or f"\ndef {name}(" in text, (file, name)


def test_a_promise_that_nobody_made_is_said_to_be_none():
    asked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "app-proof", "telepathy"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (asked.returncode, asked.stderr) == (2, "no promise has any of these words: telepathy\n")
