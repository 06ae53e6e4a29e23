"""How many sets of data an evaluation of the Hugging Face Trainer goes over. Pure; used by its callback."""

from __future__ import annotations

import math
from collections.abc import Mapping


class EvaluationSets:
    """Tells when an evaluation is over that may go over several sets of data, by the names of its figures.

    How many sets there are is known once a round is over.

    >>> sets = EvaluationSets()
    >>> sets.are_done({"eval_loss": 0.1, "eval_runtime": 2.0})
    True
    >>> sets.are_done({"eval_a_runtime": 2.0}), sets.are_done({"eval_b_runtime": 2.0}), sets.round_over()
    (False, False, None)
    >>> sets.are_done({"eval_a_runtime": 2.0}), sets.are_done({"eval_b_runtime": 2.0})
    (False, True)
    """

    def __init__(self) -> None:
        self._expected = math.inf
        self._seen = 0

    def are_done(self, metrics: Mapping[str, float]) -> bool:
        """Another set was evaluated, with these figures."""
        if "eval_runtime" in metrics:
            return True
        self._seen += 1
        return self._seen == self._expected

    def round_over(self) -> None:
        """The Trainer went on to something else."""
        if self._seen:
            self._expected, self._seen = self._seen, 0
