"""What programs said, without passwords, tokens and keys, before it is kept: pure.

The hooks take secrets out before they write a line. Other senders may not, and what an exporter holds is
read by many and copied with its backups: so texts are looked through again, by form alone.
"""

from __future__ import annotations

import msgspec

from ett_core.events import AnyEvent, CheckpointFailed, Compile, Decision, Evidence, Failure, PhaseEnd
from ett_core.redaction import visible, without_secrets

WORDS_OF_PROGRAMS: dict[type[AnyEvent], tuple[str, ...]] = {
    CheckpointFailed: ("message",),
    Compile: ("recompile_reason",),
    Decision: ("what", "why"),
    Evidence: ("text",),
    Failure: ("exception", "message"),
    PhaseEnd: ("error",),
}
"""Where an event holds what a program or a log said."""


def discreet(raw: bytes, event: AnyEvent) -> tuple[bytes, AnyEvent]:
    """A line and its event without secrets; both as they are where there is none.

    >>> from ett_core.events import decode
    >>> line = b'{"v":1,"kind":"evidence","job_id":"j","writer":"w","seq":0,"attempt":0,"rank":0,'
    >>> line += b'"time":1.0,"source":"stderr","text":"login with password=hunter2"}'
    >>> discreet(line, decode(line))[1].text
    'login with password=***'
    """
    fields = WORDS_OF_PROGRAMS.get(type(event))
    if fields is None:
        return raw, event
    said = {field: text for field in fields if (text := getattr(event, field))}
    hushed = {field: told for field, text in said.items() if (told := _hushed(text)) != text}
    if not hushed:
        return raw, event
    return (
        msgspec.json.encode(msgspec.json.decode(raw) | hushed),
        msgspec.structs.replace(event, **hushed),
    )


def _hushed(text: str) -> str:
    told = without_secrets(text, {})
    return text if told == visible(text) else told
