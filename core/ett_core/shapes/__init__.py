"""Which sizes vary between compilations, and what to tell the compiler so that it compiles once. Pure."""

from ett_core.shapes.advice import Advice, FrameAdvice, Left, advise, for_next_start
from ett_core.shapes.facts import Compilation, Input, Symbol, is_bare, symbol_of
from ett_core.shapes.recorded import compilations_of, oldest, torch_version_of

__all__ = [
    "Advice",
    "Compilation",
    "FrameAdvice",
    "Input",
    "Left",
    "Symbol",
    "advise",
    "compilations_of",
    "for_next_start",
    "is_bare",
    "oldest",
    "symbol_of",
    "torch_version_of",
]
