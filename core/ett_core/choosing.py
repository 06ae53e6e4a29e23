"""The compiler's choices among implementations of an operation (max-autotune): their cost, what won. Pure.

For a matrix multiplication Inductor measures a library's kernel and several of its own templates, each of
which it has to compile first. Where the library wins each time, all of that was in vain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

LIBRARY = "the library"
_OWN = ("triton", "cutlass", "cutedsl", "cpp", "ck", "rocm", "nvgemm", "decompose")
"""What names of kernels that the compiler writes, or puts together, begin with."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of one graph, implementations of which were compiled and measured.

    Args:
        operation: as torch calls it, such as `mm`.
        took_s: seconds of compiling and measuring them.
        candidates: how many; None where nobody told.
        winner: the name of what won; empty where nobody told.
    """

    operation: str
    took_s: float
    candidates: int | None = None
    winner: str = ""


class OperationAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, over all its choices.

    Args:
        operation: as torch calls it.
        choices: how often was chosen.
        took_s: seconds of all of them.
        candidates: the most at once; None where nobody told.
        winners: kinds of implementations that won, with how often, most frequent first.
        library_alone: whether the library won each time.
    """

    operation: str
    choices: int
    took_s: float
    candidates: int | None
    winners: tuple[tuple[str, int], ...]
    library_alone: bool


def kind_of(winner: str) -> str:
    """What implemented it: the library, or the template of which it is one of many.

    >>> kind_of("triton_mm_17"), kind_of("addmm")
    ('triton_mm', 'the library')
    """
    return winner.rstrip("0123456789").rstrip("_") if winner.lower().startswith(_OWN) else LIBRARY


def advise_choices(choices: Iterable[Choice]) -> list[OperationAdvice]:
    """What choosing cost by operation, dearest first."""
    operations: defaultdict[str, list[Choice]] = defaultdict(list)
    for choice in choices:
        operations[choice.operation].append(choice)
    told = [_advise(operation, of_one) for operation, of_one in operations.items()]
    return sorted(told, key=lambda each: (-each.took_s, each.operation))


def _advise(operation: str, choices: Sequence[Choice]) -> OperationAdvice:
    kinds = Counter(kind_of(choice.winner) for choice in choices if choice.winner)
    return OperationAdvice(
        operation=operation,
        choices=len(choices),
        took_s=sum(choice.took_s for choice in choices),
        candidates=max((each.candidates for each in choices if each.candidates is not None), default=None),
        winners=tuple(kinds.most_common()),
        library_alone=kinds[LIBRARY] == len(choices),
    )
