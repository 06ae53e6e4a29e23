"""Why a loop over a generator was left: by a decision of the program, or by an exception.

The generator is told neither; it is closed when the loop lets go of it. But the frame that lets go
stands at an instruction: `break` and `return` take the iterator off the stack by an instruction of
their own, an exception does so from wherever it was raised. Called by the thread of the loop,
once a loop; what cannot be told is called no decision.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from dis import opname
from types import CodeType, FrameType

LETTING_GO = frozenset({"POP_TOP", "POP_ITER", "FOR_ITER", "END_FOR"})
"""Instructions of `break`, `return`, and of asking an iterator (such as `islice`) that has had enough."""
SUSPENDED = frozenset({"YIELD_VALUE", "RESUME"})
"""Where a generator stands that is being closed itself."""
YOUNG = (0, 1)


def askers(frame: FrameType | None) -> tuple[CodeType, ...]:
    """The code that asks a generator for its items: that of `frame`, through generators around it."""
    return tuple(caller.f_code for caller in _through_generators(frame))


def is_left_on_purpose(frame: FrameType | None, asked_by: tuple[CodeType, ...]) -> bool:
    """Whether the loop of one of `asked_by` was left by `break`, `return` or by asking no more.

    `frame` is the one that closes the generator. False also where that cannot be told: of an iterator
    that the program kept in a variable, or has closed itself.

    >>> def items():
    ...     asked_by = askers(inspect.currentframe().f_back)
    ...     try:
    ...         yield 1
    ...     except GeneratorExit:
    ...         print(is_left_on_purpose(inspect.currentframe().f_back, asked_by))
    >>> def leave(error):
    ...     for item in items():
    ...         if error:
    ...             raise error
    ...         break
    >>> leave(None)
    True
    >>> try:
    ...     leave(KeyError())
    ... except KeyError:
    ...     pass
    False
    """
    for closer in _through_generators(frame):
        instruction = opname[closer.f_code.co_code[closer.f_lasti]] if closer.f_lasti >= 0 else ""
        if instruction in LETTING_GO:
            return closer.f_code in asked_by
        if instruction not in SUSPENDED:
            return False
    return False


def exit_in_flight() -> SystemExit | None:
    """The `SystemExit` that is on its way up, if there is one; it is young, and known to the collector."""
    found = [each for age in YOUNG for each in gc.get_objects(generation=age) if isinstance(each, SystemExit)]
    return found[-1] if found else None


def _through_generators(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, and those above it as long as they are reached through generators."""
    while frame is not None:
        yield frame
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            return
        frame = frame.f_back
