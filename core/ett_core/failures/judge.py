"""From everything that was seen of one attempt to its cause: root, cascade, teardown, or unknown.

Pure. The root is the earliest piece of root evidence by time, not by file; what follows from a
fault elsewhere wins only where nothing explains it, and then points at the rank to look at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import msgspec

from ett_core.failures.certainty import is_certain
from ett_core.failures.classes import CLASSES, LIKELY, NOT_A_FAILURE, UNKNOWN
from ett_core.failures.lines import Sighting
from ett_core.failures.order import SKEW_S, by_time, earliest
from ett_core.failures.refined import refined
from ett_core.failures.rule import CASCADE, CONTEXT, ROOT, TEARDOWN, WARNING

CERTAIN = "certain"
WITHIN_LINES = 40
"""A traceback: an exception without a name in the tables and what explains it stand this close."""
WAITED_WITHIN_S = 60.0
"""A wait that began with a save or a compilation lasted the time-out, give or take this."""
EVIDENCE_SHOWN = 20
MESSAGE_CHARACTERS = 300
_WAITED_FOR = ("checkpoint_stall", "compile_slow")
_TIMEOUT_MS = re.compile(
    r"timeout\(ms\)=(\d{1,12})|after (\d{1,12}) ?ms|timeout of (\d{1,12}) ?ms", re.IGNORECASE | re.ASCII
)
_PROGRESS = re.compile(
    r"^[^|\n]{0,80}?\d{1,3}%\|[^|\n]{0,200}\|\s{0,4}\d[^\[\]\n]{0,60}\[[^\]\n]{0,300}\]\s{0,80}(?=\S)",
    re.ASCII,
)


class Evidence(msgspec.Struct, frozen=True):
    """One line that a diagnosis rests on. `time` is Unix seconds, null where it is not known."""

    source: str
    line: int
    time: float | None
    text: str
    role: str


class Diagnosis(msgspec.Struct, frozen=True):
    """Why an attempt ended, as far as it was seen; fields as in docs/failures.md."""

    failure_class: str
    domain: str
    role: str
    confidence: str
    retry: str
    rank: int | None
    node: str
    evidence: tuple[Evidence, ...]
    message: str


def judge(sightings: Sequence[Sighting]) -> Diagnosis:
    """The cause of one attempt from everything that was seen of it, in any order."""
    seen = sorted(sightings, key=by_time)
    chosen = (
        _root(seen)
        or _kill(seen)
        or _stall(seen)
        or _cascade(seen)
        or earliest([s for s in seen if s.role == CASCADE and s.failure_class != UNKNOWN])
        or _hang(seen)
        or earliest([s for s in seen if s.role == ROOT and not _is_unnamed(s)])
        or earliest([s for s in seen if s.role == CASCADE])
        or earliest([s for s in seen if s.role == TEARDOWN and s.failure_class != "peer_failure"])
        or earliest([s for s in seen if s.role == TEARDOWN])
        or earliest([s for s in seen if _is_unnamed(s)])
    )
    if chosen is not None:
        better = _without_blame(refined(chosen, seen))
        is_renamed = better.text == chosen.text
        return _diagnosis(better, [better if is_renamed and each is chosen else each for each in seen])
    return _nothing_ended(seen)


def _without_blame(chosen: Sighting) -> Sighting:
    """An end of an unknown kind is never called the root: what is shown followed from what is not."""
    is_blamed = chosen.failure_class == UNKNOWN and chosen.role == ROOT
    return msgspec.structs.replace(chosen, role=CASCADE) if is_blamed else chosen


def _root(seen: Sequence[Sighting]) -> Sighting | None:
    """The earliest strong root. Of logs that cannot be ordered against each other: the surer one."""
    roots = [s for s in seen if s.role == ROOT and not s.weak]
    if not roots:
        return None
    first = next((s for s in roots if s.order_s is not None), roots[0])
    rivals = [first, *(s for s in roots if s is not first and _may_be_earlier(s, first))]
    best = min(rivals, key=lambda s: (s.generic, not s.certain, by_time(s)))
    return _explained(best, roots) if best.generic else best


def _may_be_earlier(other: Sighting, first: Sighting) -> bool:
    if other.source == first.source:
        return other.line < first.line
    if other.order_s is None or first.order_s is None:
        return True
    return other.order_s - first.order_s <= SKEW_S


def _explained(generic: Sighting, roots: Sequence[Sighting]) -> Sighting:
    """What the same traceback says better than the name of its exception, wherever it was repeated."""
    repeated = [s for s in roots if s is generic or _is_repeated(s, generic)]
    near = [
        s
        for s in roots
        if _how_generic(s) < _how_generic(generic) and any(_is_near(s, each) for each in repeated)
    ]
    return min(near, key=lambda s: (_how_generic(s), by_time(s)), default=generic)


def _how_generic(sighting: Sighting) -> int:
    """0: a table names it; 1: so, though a traceback may say it better; 2: an exception alone."""
    return 0 if not sighting.generic else 2 if sighting.failure_class == "user_code" else 1


def _is_repeated(other: Sighting, generic: Sighting) -> bool:
    """The same words of the same rank: what a process said of itself, and what it printed."""
    same_rank = None in (other.rank, generic.rank) or other.rank == generic.rank
    text = generic.text.strip()
    return other.failure_class == generic.failure_class and same_rank and bool(text) and text in other.text


def _is_near(other: Sighting, one: Sighting) -> bool:
    if other.source != one.source or abs(other.line - one.line) > WITHIN_LINES:
        return False
    return None in (other.order_s, one.order_s) or abs((other.order_s or 0) - (one.order_s or 0)) <= SKEW_S


def _kill(seen: Sequence[Sighting]) -> Sighting | None:
    """A process that was killed or crashed, unless it had been waiting before: then it was only ended."""
    ends = ("host_oom", "native_crash", "user_cancelled")
    killed = earliest(
        [s for s in seen if s.role == ROOT and s.weak and not s.by_abort and s.failure_class in ends]
    )
    before = earliest([s for s in seen if _is_wait(s) or _ended_before(s, killed)])
    return None if killed is None or (before and by_time(before) < by_time(killed)) else killed


def _ended_before(other: Sighting, killed: Sighting | None) -> bool:
    """A process that had failed so long before a kill that whoever supervises them ended the rest."""
    if killed is None or other.role != ROOT or not other.weak or other.failure_class != UNKNOWN:
        return False
    if None in (other.order_s, killed.order_s) or other.source != killed.source:
        return False
    return (killed.order_s or 0.0) - (other.order_s or 0.0) > SKEW_S


def _is_wait(sighting: Sighting) -> bool:
    return sighting.failure_class == "collective_timeout" or (
        _is_hint_of_a_hang(sighting) and not sighting.weak
    )


def _is_unnamed(sighting: Sighting) -> bool:
    """Last words that no table knows: any other end says more."""
    return sighting.failure_class == UNKNOWN and sighting.weak and sighting.generic


def _is_hint_of_a_hang(sighting: Sighting) -> bool:
    return sighting.role == CONTEXT and sighting.failure_class == "hang"


def _hang(seen: Sequence[Sighting]) -> Sighting | None:
    """What said that nothing moves any more, where nothing else explains the end."""
    return earliest([s for s in seen if _is_hint_of_a_hang(s)])


def _stall(seen: Sequence[Sighting]) -> Sighting | None:
    """A save or a compilation that began exactly one time-out before ranks gave up waiting."""
    began = [
        s for s in seen if s.role == CONTEXT and s.failure_class in _WAITED_FOR and s.order_s is not None
    ]
    for wait in (s for s in seen if s.failure_class == "collective_timeout" and s.order_s is not None):
        limit_s = _timeout_s(wait.text)
        for start in reversed(began):
            waited_s = (wait.order_s or 0.0) - (start.order_s or 0.0)
            if limit_s is not None and abs(waited_s - limit_s) <= WAITED_WITHIN_S:
                return msgspec.structs.replace(start, role=ROOT, certain=False)
    return None


def _timeout_s(text: str) -> float | None:
    found = _TIMEOUT_MS.search(text)
    return next((int(group) / 1000.0 for group in found.groups() if group), None) if found else None


def _cascade(seen: Sequence[Sighting]) -> Sighting | None:
    """The earliest of what follows from elsewhere, a stop from outside, and the word that nothing moves.

    A meeting that was closed by others explains a stop, whichever was printed first.
    """
    closed = [s for s in seen if s.role == CASCADE and s.certain and not s.weak]
    either = [
        s
        for s in seen
        if (s.role == CASCADE and not s.weak and s.failure_class != UNKNOWN)
        or (s.role in (ROOT, CASCADE) and s.failure_class == "external_stop")
        or (_is_hint_of_a_hang(s) and not s.weak)
    ]
    return earliest(closed) or earliest(either)


def _diagnosis(chosen: Sighting, seen: Sequence[Sighting]) -> Diagnosis:
    known = CLASSES[chosen.failure_class]
    confidence = CERTAIN if is_certain(chosen, seen) else LIKELY
    if chosen.failure_class == UNKNOWN or chosen.role == CONTEXT:
        confidence = UNKNOWN
    return Diagnosis(
        failure_class=known.name,
        domain=known.domain,
        role=ROOT if chosen.role == CONTEXT else chosen.role,
        confidence=confidence,
        retry=known.retry,
        rank=next(
            (r for r in (chosen.points_at, chosen.rank, _rank_of_same(chosen, seen)) if r is not None), None
        ),
        node=chosen.node,
        evidence=_evidence(chosen, seen),
        message=_message(chosen.text),
    )


def _rank_of_same(chosen: Sighting, seen: Sequence[Sighting]) -> int | None:
    """Whom it hit, where the kernel or a scheduler says what happened and a rank's end says to whom."""
    same = (s.rank for s in seen if s.role == ROOT and s.failure_class == chosen.failure_class)
    return next((rank for rank in same if rank is not None), None)


def _nothing_ended(seen: Sequence[Sighting]) -> Diagnosis:
    known = CLASSES[NOT_A_FAILURE]
    evidence = tuple(_shown(s, WARNING) for s in seen[:EVIDENCE_SHOWN] if s.role == WARNING)
    message = "Nothing here says that the job ended." if not evidence else _message(evidence[0].text)
    return Diagnosis(known.name, known.domain, WARNING, LIKELY, known.retry, None, "", evidence, message)


def _evidence(chosen: Sighting, seen: Sequence[Sighting]) -> tuple[Evidence, ...]:
    """The lines that matter, in time order, what repeats only once a rank."""
    shown: list[Evidence] = []
    for _, group in groupby(seen, key=lambda s: (s.source, s.rank, s.failure_class, s.role)):
        first = next(group)
        if first.role != CONTEXT or first.failure_class == chosen.failure_class:
            kept = (first, *(s for s in group if s == chosen))
            shown += (_shown(s, _role_beside(s, chosen)) for s in kept)
    at = next((i for i, e in enumerate(shown) if (e.source, e.line) == (chosen.source, chosen.line)), None)
    if at is None:
        shown.insert(0, _shown(chosen, chosen.role))
        at = 0
    begin = max(min(at - EVIDENCE_SHOWN // 4, len(shown) - EVIDENCE_SHOWN), 0)
    return tuple(shown[begin : begin + EVIDENCE_SHOWN])


def _role_beside(sighting: Sighting, chosen: Sighting) -> str:
    """A root that is not the root of this attempt followed from the one that is."""
    same = sighting.failure_class == chosen.failure_class
    return CASCADE if sighting.role == ROOT and not same else sighting.role


def _shown(sighting: Sighting, role: str) -> Evidence:
    return Evidence(sighting.source, sighting.line, sighting.time, _message(sighting.text, 1000), role)


def _message(text: str, limit: int = MESSAGE_CHARACTERS) -> str:
    r"""A line for people: one line, without control characters, and without the bar of progress before it.

    >>> _message("Epoch 0:   6%|##    | 3204/50015 [6:28<94:39,  1.37it/s, loss=2.6][rank3]: KeyError: 'x'")
    "[rank3]: KeyError: 'x'"
    >>> _message("RuntimeError: much too long", limit=13)
    'RuntimeError…'
    """
    line = "".join(c if c.isprintable() else " " for c in _PROGRESS.sub("", text)).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip(' :')}…"
