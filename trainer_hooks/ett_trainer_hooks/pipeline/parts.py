"""Which parts of the optimised pipeline a trainer uses: one setting, read the same on every rank."""

from __future__ import annotations

PARTS: dict[str, str] = {
    "stages": "stages of the start that do not need each other run side by side",
    "toolchain": "the native compiler is made ready while the model is built",
    "fast_batch": "a made-up batch has the model compiled while the data warm up",
    "stored_plan": "the sharding plan of an earlier start is used again where nothing has changed",
    "local_metadata": "metadata of sharded tables is built from the plan, without a gather a table",
    "bundle": "compiled code of an earlier start, complete and checked, is loaded instead of compiled",
    "one_compile": "the first rank of a node compiles, the others load what it has compiled",
    "pgo": "sizes that earlier starts of the job have seen are kept by torch under the job's name",
    "dynamic_sources": "sizes that varied in earlier starts are left open from the first compilation on",
    "kept_data": "what an earlier start on the host has made of the data lies ready on its disk",
    "async_checkpoint": "saves go on beside the training, into a store that no kill and no damage spoils",
    "no_wait_staging": "weights are copied during the next forward pass; with async_checkpoint",
    "interval_control": "the checkpoint interval is set from what saves take and how often the job fails",
    "standby": "under ett run --standby, a process that waits has prepared the next start of each rank",
    "preemption": "a job that is told to go saves first, where that fits into the grace time and pays",
    "standalone_publishing": "a process of its own publishes the model once the trainer has left",
    "quick_exit": "a process that is done ends at once, without taking its modules down",
}
"""Every part by name, with what it does."""

OF_THE_ENVIRONMENT = frozenset({"pgo", "dynamic_sources"})
"""Parts that need nothing but variables: a launcher can use them for any program."""

ALL = "all"


def parse(text: str) -> frozenset[str]:
    """The parts that a setting names: names or `all`, with `-` before what to leave out.

    Raises ValueError for a name that is no part.

    >>> sorted(parse("stages"))
    ['stages']
    >>> "stages" in parse("all,-stages"), parse("")
    (False, frozenset())
    """
    chosen: set[str] = set()
    for word in filter(None, (piece.strip() for piece in text.split(","))):
        names = _named(word.removeprefix("-"))
        chosen = chosen - names if word.startswith("-") else chosen | names
    return frozenset(chosen)


def _named(word: str) -> set[str]:
    if word == ALL:
        return set(PARTS)
    if word not in PARTS:
        raise ValueError(f"{word!r} is no part of the pipeline; there are {', '.join(PARTS)} and {ALL}")
    return {word}
