"""PromQL as text: series of the fleet, chosen by labels whose values may be anything. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_NEVER_RAW = "\ufffd"
"""The mark of a broken character, at which Prometheus stops reading."""


def quoted(text: str) -> str:
    r"""A string of PromQL that means exactly this text; half characters become the mark of broken ones.

    >>> print(quoted('a"b\\c'), quoted("two\nlines"), quoted("\ud800"))
    "a\"b\\c" "two\u000alines" "\ufffd"
    """
    return f'"{"".join(map(_escaped, text))}"'


def literal(text: str) -> str:
    r"""A regular expression that matches exactly this text.

    >>> print(literal("a.b|c"))
    a\.b\|c
    """
    return _META.sub(r"\\\g<0>", text)


def equals(label: str, value: str) -> str:
    """A matcher of one value."""
    return f"{label}={quoted(value)}"


def among(label: str, values: Iterable[str]) -> str:
    r"""A matcher of any of some values.

    >>> print(among("state", ["lost", "a.b"]))
    state=~"lost|a\\.b"
    """
    return f"{label}=~{quoted('|'.join(map(literal, values)))}"


def containing(label: str, part: str) -> str:
    """A matcher of values that contain a part, in capitals or not."""
    return f"{label}=~{quoted(f'(?is:.*{literal(part)}.*)')}"


class Series(msgspec.Struct, frozen=True):
    """Names series of the fleet: every selector bears `matchers`.

    >>> print(Series(('env="prod"',)).of("ett_job_state", equals("state", "lost")))
    ett_job_state{env="prod", state="lost"}
    """

    matchers: tuple[str, ...] = ()

    def of(self, name: str, *matchers: str) -> str:
        """The series of one family."""
        chosen = ", ".join((*self.matchers, *matchers))
        return f"{name}{{{chosen}}}" if chosen else name

    def of_jobs(self, job_ids: Iterable[str]) -> str:
        """All series of some jobs, by their prefix: a list of names costs VictoriaMetrics much more."""
        return self.of("", '__name__=~"ett_job_.*"', among("job_id", job_ids))

    def a_job(self, name: str, *matchers: str) -> str:
        """One value a job, also where several servers scrape or several exporters know it."""
        return f"max by (job_id) ({self.of(name, *matchers)})"


def _escaped(character: str) -> str:
    if character in '\\"':
        return f"\\{character}"
    code = ord(character)
    if 0xD800 <= code < 0xE000:  # noqa: PLR2004 - halves of surrogate pairs
        code = ord(_NEVER_RAW)
    if code < ord(" ") or code in (0x7F, ord(_NEVER_RAW)):
        return f"\\u{code:04x}"
    return character
