"""`python -m ett_trainer_hooks.pipeline.publishing FOLDER --to PLACE`: publish what was handed over.

This is the process that `ett publish` starts and observes. It ends with 0 where the model is published,
with 75 where trying again may help, with 65 where it does not: then the hand-over has its outcome.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.imports import uncollected
from ett_trainer_hooks.pipeline.publishing.handover import HandOver


def main() -> None:
    """Publish, and say how it went. The recorder is there before the heavy imports."""
    arguments = parsed(sys.argv[1:])
    recorder = Recorder.from_env()
    with recorder.phase("imports"), uncollected():
        from ett_trainer_hooks.pipeline.publishing import working  # noqa: PLC0415 - takes seconds
    status = working.run(
        HandOver(arguments.folder),
        arguments.to,
        recorder,
        form=arguments.tables,
        tolerance=arguments.tolerance,
    )
    recorder.close("failed" if status else "succeeded", exit_code=status)
    sys.exit(status)


def parsed(words: list[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="ett_trainer_hooks.pipeline.publishing")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", required=True)
    parser.add_argument("--tables", choices=["plain", "int8"], default="plain")
    parser.add_argument("--tolerance", type=float)
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
