"""`ett` in the process of the tests, where it is not the process that is tested: a start takes long."""

from __future__ import annotations

from ett_cli.main import main


def status_of(*words: str) -> object:
    """What a command ends with, also where its words are refused before it begins."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code
