"""What a standby of the reference trainer prepares: imports, the source of the data, compiled code.

Runs in the standby's process (`prepare`), whose main thread goes on with the program once it takes over.
"""

from __future__ import annotations

from typing import NamedTuple

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import standby, toolchain
from ett_trainer_hooks.pipeline.bundle import compiler
from ett_trainer_hooks.pipeline.imports import uncollected
from ett_trainer_hooks.reference.compiled import Compiled
from ett_trainer_hooks.reference.settings import Settings, parse, words_of
from ett_trainer_hooks.reference.source import Source


class Prepared(NamedTuple):
    """What lies ready in the process that takes over."""

    source: Source
    is_compiled: bool


def ask(settings: Settings) -> None:
    """Have a standby made, where that part is on and the launcher makes any."""
    if settings.uses("standby"):
        standby.prepare(prepare, *words_of(settings))


def prepare(*words: str) -> Prepared:
    """Do what the start of a rank with these settings needs, as far as it needs no other rank.

    What draws random numbers is undone or seeded again by the start itself.
    """
    settings = parse(words)
    recorder = Recorder.from_env()
    source = Source(settings, recorder, keeps=settings.uses("kept_data"))
    Compiled(settings, recorder, in_memory=True)
    if settings.compile and settings.uses("toolchain"):
        toolchain.trust_processor()
    with uncollected():
        from ett_trainer_hooks.reference import work  # noqa: PLC0415 - takes seconds

    is_compiled = False
    if settings.compile:
        compiler.spare_header()
        model = work.build(settings, work.device())
        is_compiled = work.fast_batch(settings, recorder).rehearse(work.model.dense_parts(model))
    source.warm_up()
    return Prepared(source, is_compiled)
