"""The generated files: made from one object of settings, written, and compared with what is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ett_grafana.board import text_of
from ett_grafana.boards import caches, checkpoints, exporter, failures, fleet, job
from ett_grafana.config import Config
from ett_grafana.model import Board
from ett_grafana.provisioning import provisioning_files
from ett_grafana.rules import rule_files


def boards(config: Config) -> tuple[Board, ...]:
    """Every board, in the order in which people meet them."""
    modules = (fleet, job, failures, caches, checkpoints, exporter)
    return tuple(module.board(config) for module in modules)


def generated(config: Config) -> Mapping[str, str]:
    """Text by path within the directory that is written to."""
    texts = {f"boards/{board.name}.json": text_of(board) for board in boards(config)}
    return {**texts, **rule_files(config), **provisioning_files(config, tuple(texts))}


def write(files: Mapping[str, str], directory: Path) -> None:
    """Write files into a directory; folders are made where they are missing.

    Raises:
        OSError: a folder or a file cannot be written.
    """
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def differing(files: Mapping[str, str], directory: Path) -> list[str]:
    """Paths that are missing or hold something else, and those beside them that nobody writes."""
    folders = {Path(name).parent for name in files}
    beside = (path for folder in folders for path in (directory / folder).glob("*") if path.is_file())
    there = {path.relative_to(directory) for path in beside}
    extra = there - {Path(name) for name in files}
    changed = [name for name, text in files.items() if _read(directory / name) != text]
    return sorted([*changed, *map(str, extra)])


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
