"""What a person sets about stalls."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from ett_core.waits import check_wait

Action: TypeAlias = Literal["none", "dump", "kill"]

ACTIONS: tuple[Action, ...] = ("none", "dump", "kill")


@dataclass(frozen=True, kw_only=True)
class StallLimits:
    """Seconds without progress until a rank counts as stalled, by what it does; 0: never."""

    after_s: float = 300.0
    """In the training loop; at least ten usual steps and three usual times between reports."""
    first_batch_s: float = 1800.0
    """Before the first step is reported: imports, loading, compiling."""
    evaluation_s: float = 1800.0
    """In an `evaluation` phase."""
    checkpoint_s: float = 1800.0
    """In a `checkpoint` phase."""
    compile_s: float = 1800.0
    """In a `compile` phase once the loop runs."""
    other_s: float = 1800.0
    """In any other phase once the loop runs, such as `publish` or `shutdown`."""

    def __post_init__(self) -> None:
        """Check.

        Raises:
            ValueError: a limit is no length of a wait; the message names it.
        """
        for name in (each.name for each in fields(self)):
            check_wait(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class StallSettings:
    """What counts as a stall, and what is done about it."""

    limits: StallLimits = field(default_factory=StallLimits)
    """Seconds without progress, by what a rank does."""
    action: Action = "dump"
    """`none` tells of a stall, `dump` also records what each rank is doing, `kill` then ends the command."""

    def __post_init__(self) -> None:
        """Check.

        Raises:
            ValueError: a setting is wrong; the message names it.
        """
        if self.action not in ACTIONS:
            raise ValueError(f"the stall action {self.action!r} is none of {', '.join(ACTIONS)}")
