"""Events on disk, one a line: kept by the process that writes them, read by those that carry them on.

`writer` is the journal of one process; `parts` its files, `syncing` what brings them to the disk
itself, `place` where they can be kept; `segments` what of them an exporter does not hold yet.
"""

from ett_trainer_hooks.journal.writer import Journal, NullJournal

__all__ = ["Journal", "NullJournal"]
