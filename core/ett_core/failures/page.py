"""The page of all failure classes, as Markdown: made from the tables, so that it is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ett_core.failures.classes import CLASSES, FailureClass
from ett_core.failures.rule import Rule
from ett_core.failures.rules import RULES

EXAMPLES_SHOWN = 3
_BY_OTHER_MEANS = {
    "hang": "No progress for longer than the limits of the watchdog, seen from outside the process.",
    "checkpoint_stall": "A collective timed out exactly its time-out after a save began; a hang in a save.",
    "compile_slow": "A collective timed out exactly its time-out after a compilation began; a hang in one.",
    "native_crash": "SIGSEGV, SIGABRT, SIGBUS, SIGILL or SIGFPE, and nothing that explains it.",
    "unknown": "An exit code that means nothing by itself; last words of an end that no table knows.",
    "user_code": "Any other exception of Python.",
}
_HEAD = """\
# Failure classes

This page is generated from the tables of the classifier (`core/ett_core/failures/`) by
`scripts/failure-docs`; a test keeps it true. How a class is chosen among much evidence stands in
[diagnose.md](diagnose.md).

- **Domain**: whose it is. `workload` the job, `infrastructure` hardware, network and storage,
  `platform` scheduler, containers, limits and services.
- **Retry**: whether the same job may succeed if it is started again: `likely` as it is,
  `with_change` of the job, `after_remediation` of the hardware.

| class | domain | retry | it means |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    table = "".join(
        f"| [`{row.name}`](#{row.name}) | {row.domain} | {row.retry} | {row.meaning} |\n"
        for row in CLASSES.values()
    )
    return f"{_HEAD}{table}\n" + "\n".join("\n".join(_section(row)) for row in CLASSES.values())


def _section(row: FailureClass) -> Iterator[str]:
    yield f"## {row.name}"
    yield f"{row.meaning} Domain: {row.domain}. Retry: {row.retry}."
    yield ""
    yield f"**What to do.** {row.action}"
    yield ""
    yield "**How it is recognised.**"
    if row.name in _BY_OTHER_MEANS:
        yield _BY_OTHER_MEANS[row.name]
    rules = [rule for rule in RULES if rule.failure_class == row.name]
    if rules:
        yield "For example:"
        yield ""
        yield from _examples(rules)
    yield ""


def _examples(rules: Sequence[Rule]) -> Iterator[str]:
    yield "```text"
    yield from (rule.example for rule in rules[:EXAMPLES_SHOWN])
    yield "```"
