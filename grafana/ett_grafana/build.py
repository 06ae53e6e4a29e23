"""The files of the boards: made from one object of settings, written, and compared with what is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ett_grafana.board import text_of
from ett_grafana.boards import caches, checkpoints, exporter, failures, fleet, job
from ett_grafana.config import Config
from ett_grafana.model import Board


def boards(config: Config) -> tuple[Board, ...]:
    """Every board, in the order in which people meet them."""
    return tuple(
        module.board(config) for module in (fleet, job, failures, caches, checkpoints, exporter)
    )


def board_files(config: Config) -> Mapping[str, str]:
    """Text by name of file."""
    return {f"{board.name}.json": text_of(board) for board in boards(config)}


def write(files: Mapping[str, str], directory: Path) -> None:
    """Write files into a directory, which is made where it is missing.

    Raises:
        OSError: the directory or a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")


def differing(files: Mapping[str, str], directory: Path) -> list[str]:
    """Names of files that are missing in a directory or hold something else, and of JSON files too many."""
    there = {path.name for path in directory.glob("*.json")}
    return sorted(
        [name for name, text in files.items() if _read(directory / name) != text]
        + [name for name in there if name not in files]
    )


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
