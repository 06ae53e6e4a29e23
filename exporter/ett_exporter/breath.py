"""Pauses in work that computes for long, so that requests get the interpreter in between.

A thread that computes gives the interpreter up after 5 ms, and a request needs it several times. To
have all threads take shorter turns costs the intake half of its speed; a pause after each piece of
the long work costs only that work.
"""

from __future__ import annotations

import time

PAUSE_S = 5e-5


def breathe() -> None:
    """Let another thread go on, if one waits."""
    time.sleep(PAUSE_S)
