"""What the reference trainer leaves out of torch's warnings is what it names, and no more."""

from __future__ import annotations

import logging
import warnings

import pytest

from ett_trainer_hooks.reference import notes


@pytest.fixture
def loggers():
    """The loggers as they are found, and left."""
    found = {name: logging.getLogger(name) for name in notes.LOGGED}
    before = {name: list(logger.filters) for name, logger in found.items()}
    yield found
    for name, logger in found.items():
        logger.filters = before[name]


def said(loggers, caplog):
    """What is still heard of each note, and of other words beside it."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        notes.pass_over(())
        for beginning in notes.DEPRECATED:
            warnings.warn(f"{beginning}. Use another.", FutureWarning, stacklevel=1)
            warnings.warn(f"{beginning}. Use another.", UserWarning, stacklevel=1)
        warnings.warn("the user's own", FutureWarning, stacklevel=1)
    for name, beginning in notes.LOGGED.items():
        loggers[name].warning("%s", f"{beginning} of these")
        loggers[name].warning("another line")
    return [str(each.message) for each in heard], [record.getMessage() for record in caplog.records]


def test_only_the_notes_that_are_named_are_left_out(loggers, caplog):
    """A warning of another kind or of other words, and other lines of the same logger, are heard."""
    heard, logged = said(loggers, caplog)
    assert heard == [*(f"{beginning}. Use another." for beginning in notes.DEPRECATED), "the user's own"]
    assert logged == ["another line"] * len(notes.LOGGED)


def test_whoever_asks_for_warnings_hears_all_of_them(loggers):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        notes.pass_over(("default",))
        for beginning in notes.DEPRECATED:
            warnings.warn(beginning, FutureWarning, stacklevel=1)
    assert len(heard) == len(notes.DEPRECATED)
    assert not any(logger.filters for logger in loggers.values())
