"""Notes of torch and TorchRec to their own developers, which would fill a start of the reference trainer.

Each is about a call that one of the two makes of the other, or of itself, and asks nothing of whoever
trains. Nothing else is silenced, and these are not where somebody asks for warnings (`python -W`,
`PYTHONWARNINGS`).
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping, Sequence

DEPRECATED = (
    "`broadcast_buffers` is deprecated",  # DistributedModelParallel, of DistributedDataParallel
    "Please use DTensor instead and we are deprecating ShardedTensor",  # checkpoints of sharded tables
)
"""How warnings begin that are passed over."""
LOGGED: Mapping[str, str] = {
    "torch.fx._symbolic_trace": "is_fx_tracing will return true for both",  # TorchRec, while it is compiled
}
"""Logger to how lines begin that are passed over."""


def pass_over(options: Sequence[str] = sys.warnoptions) -> None:
    """Leave these notes out from here on; call it once torch is there. `options` are those of `python -W`."""
    if options:
        return
    for beginning in DEPRECATED:
        warnings.filterwarnings("ignore", message=beginning, category=FutureWarning)
    for name, beginning in LOGGED.items():
        logging.getLogger(name).addFilter(_Without(beginning))


class _Without(logging.Filter):
    """Lets all lines pass but those that begin so."""

    def __init__(self, beginning: str) -> None:
        super().__init__()
        self._beginning = beginning

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line passes."""
        return not record.getMessage().startswith(self._beginning)
