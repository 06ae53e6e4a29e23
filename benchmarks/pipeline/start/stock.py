"""The reference trainer with torch's own MegaCache, as its documentation says: the rival of bundles.

Each rank loads the artifacts that it saved at the end of an earlier start, and saves its own.
"""

from __future__ import annotations

import os
from pathlib import Path

from ett_trainer_hooks.reference.__main__ import main

FOLDER = "STOCK_ARTIFACTS"


def run() -> None:
    import torch  # noqa: PLC0415 - after the settings of the environment

    path = Path(os.environ[FOLDER]) / f"rank{os.environ['RANK']}.bin"
    if path.exists():
        torch.compiler.load_cache_artifacts(path.read_bytes())
    main()
    saved = torch.compiler.save_cache_artifacts()
    if saved is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(saved[0])


if __name__ == "__main__":
    run()
