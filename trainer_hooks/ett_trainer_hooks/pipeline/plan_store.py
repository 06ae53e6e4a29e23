"""The sharding plan of an earlier start, used again where nothing that it was made for has changed.

Planning takes seconds to minutes and a broadcast of the plan; a restart in the same circumstances
would come to the same plan. So it is kept, one file a context (`plan-CONTEXT.json`):
versions, topology, tables, sharders, constraints. At a restart every rank reads the file for itself
and the ranks compare digests in one small all-reduce; nothing is broadcast. Whatever does not fit, on
any rank, makes all of them plan anew, and each rank tells why by a decision event.

The place may be shared by all hosts or be a directory on each: the first rank of every host writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
import torch
import torch.distributed as dist
from torchrec.distributed.types import ShardingPlan

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.pipeline.agreement import all_agree
from ett_trainer_hooks.pipeline.bundle.files import Files, files_at
from ett_trainer_hooks.pipeline.bundle.patience import within
from ett_trainer_hooks.pipeline.differences import difference
from ett_trainer_hooks.pipeline.plan_context import Context, context_of, memory_difference
from ett_trainer_hooks.pipeline.plan_format import Tables, restored, stored

T = TypeVar("T")
FORMAT = 1
KEPT = 16
"""Plans that stay in a place; the oldest goes first."""
PLANS = "plan-*.json"
PATIENCE_S = 30.0

USED = "the stored sharding plan is used"
MADE = "the sharding plan is made anew"
NOT_STORED = "the sharding plan is not stored"


class PlanStoreError(Exception):
    """A plan cannot be had, or kept: not there, damaged, made for something else; or the place fails."""


class Body(msgspec.Struct, frozen=True):
    """A plan, and what it was made for."""

    context: Context
    tables: Tables


class _Sealed(msgspec.Struct, frozen=True):
    format: int
    made_at: float
    sha256: str
    body: msgspec.Raw


class Opened(msgspec.Struct, frozen=True):
    """What a file holds; the hash is of its body, so it is the same in all files of one plan."""

    made_at: float
    sha256: str
    body: Body


class PlanStore:
    """The plans at an address: a directory, which need not exist yet, or a URL that fsspec understands.

    Args:
        address: where they lie.
        patience_s: longest time for one answer of the place.
        now: Unix seconds.
    """

    def __init__(
        self, address: str, *, patience_s: float = PATIENCE_S, now: Callable[[], float] = time.time
    ) -> None:
        self._address = address
        self._patience_s = patience_s
        self._now = now

    def load(self, context: Context) -> tuple[ShardingPlan, str]:
        """The plan made for a context, and the digest of its file.

        Raises:
            PlanStoreError: there is none that can be used.
        """
        path = path_of(context)
        data = self._read(path)
        if data is None:
            raise PlanStoreError(self._absence(context))
        try:
            file = opened(data)
            plan = restored(file.body.tables)
        except ValueError as error:
            raise PlanStoreError(f"{path} in {self._address} is damaged, or newer: {error}") from error
        if changed := _changed(file.body.context, context):
            raise PlanStoreError(f"{path} in {self._address} was made for something else: {changed}")
        return plan, file.sha256

    def save(self, context: Context, plan: ShardingPlan) -> None:
        """Keep a plan for its context: whole or not at all.

        Raises:
            ValueError: the plan holds what has no place in the format.
            PlanStoreError: the place does not take it.
        """
        body = msgspec.json.encode(Body(context, stored(plan)))
        file = _Sealed(FORMAT, self._now(), sha256(body).hexdigest(), msgspec.Raw(body))
        own = path_of(context)
        self._ask(lambda files: files.write(own, msgspec.json.encode(file)))
        paths = self._paths()
        if len(paths) > KEPT:
            kept = [own, *(path for path, _ in self._newest_first(paths) if path != own)][:KEPT]
            for path in {*paths} - {*kept}:
                self._remove(path)

    def _paths(self) -> list[str]:
        return [path for path in self._ask(lambda files: files.sizes("")) if fnmatch(path, PLANS)]

    def _newest_first(self, paths: Iterable[str]) -> list[tuple[str, Opened]]:
        """Those of the files that can be read."""
        found = []
        for path in paths:
            data = self._read(path)
            if data is not None:  # taken away meanwhile
                with suppress(ValueError):  # damaged
                    found.append((path, opened(data)))
        return sorted(found, key=lambda each: -each[1].made_at)

    def _absence(self, context: Context) -> str:
        """Why there is no plan for a context: how the newest of the others does not fit."""
        for _, file in self._newest_first(self._paths()):
            changed = _changed(file.body.context, context)
            return f"none in {self._address} is for this start; since the newest, {changed}"
        return f"there is none in {self._address} yet"

    def _read(self, path: str) -> bytes | None:
        def content(files: Files) -> bytes | None:
            try:
                return files.read(path)
            except FileNotFoundError:
                return None

        return self._ask(content)

    def _remove(self, path: str) -> None:
        self._ask(lambda files: files.remove(path))

    def _ask(self, question: Callable[[Files], T]) -> T:
        """One answer of the place, in time."""
        try:
            return within(self._patience_s, lambda: question(files_at(self._address)))
        except Exception as error:  # places of all kinds raise errors of all kinds
            raise PlanStoreError(f"{self._address}: {type_and_text(error)}") from error


def opened(data: bytes) -> Opened:
    """What a file holds.

    Raises:
        ValueError: it is damaged, or of another format.
    """
    sealed = msgspec.json.decode(data, type=_Sealed)
    if sealed.format != FORMAT:
        raise ValueError(f"it has format {sealed.format}, not {FORMAT}")
    if sha256(sealed.body).hexdigest() != sealed.sha256:
        raise ValueError("its content does not have the hash that it names")
    return Opened(sealed.made_at, sealed.sha256, msgspec.json.decode(sealed.body, type=Body))


def path_of(context: Context) -> str:
    """The file that is for a context."""
    return PLANS.replace("*", key_of(context))


def key_of(context: Context) -> str:
    """A name for the context, but for its memory: the same wherever the same plan would be made."""
    return sha256(msgspec.json.encode(context.facts, order="deterministic")).hexdigest()[:32]


def stored_plan(  # noqa: PLR0913 - what `collective_plan` takes, and the store
    planner: Any,  # noqa: ANN401 - TorchRec's
    module: torch.nn.Module,
    sharders: Sequence[Any],
    *,
    store: PlanStore,
    recorder: Recorder,
    group: dist.ProcessGroup | None = None,
) -> ShardingPlan:
    """The plan that `planner.collective_plan(module, sharders, group)` gives, from the store where it can be.

    Every rank of the group (all without it) calls; costs one all-reduce of two numbers where the plan
    is used again. A store that fails costs its use, never the start.
    """
    began_s = time.monotonic()
    context, plan, digest, reason = _look(planner, module, sharders, store)
    if all_agree(digest, group) and plan is not None:
        _tell(recorder, USED, "all ranks hold the same one", plan, began_s)
        return plan
    plan = planner.collective_plan(module, sharders, group or dist.GroupMember.WORLD)
    _tell(recorder, MADE, reason or "another rank has a different one, or none", plan, began_s)
    if context is not None and _is_first_of_host():
        try:
            store.save(context, plan)
        except (PlanStoreError, ValueError) as error:
            recorder.decision(NOT_STORED, str(error))
    return plan


def _look(
    planner: Any,  # noqa: ANN401 - TorchRec's
    module: torch.nn.Module,
    sharders: Sequence[Any],
    store: PlanStore,
) -> tuple[Context | None, ShardingPlan | None, bytes | None, str]:
    """The context, the plan with the digest of its file, and why there is none."""
    try:
        context = context_of(planner, module, sharders)
    except AttributeError as error:
        return None, None, None, f"this planner does not tell what it plans for: {error}"
    try:
        plan, digest = store.load(context)
    except PlanStoreError as why:
        return context, None, None, str(why)
    return context, plan, f"{key_of(context)} {digest}".encode(), ""


def _changed(then: Context, now: Context) -> str:
    facts = msgspec.json.decode(msgspec.json.encode(now.facts))
    return difference(then.facts, facts) or memory_difference(then.memory, now.memory)


def _tell(recorder: Recorder, what: str, why: str, plan: ShardingPlan, began_s: float) -> None:
    tables = sum(len(module) for module in plan.plan.values())
    recorder.decision(what, why, {"tables": tables, "seconds": time.monotonic() - began_s})


def _is_first_of_host(environ: Mapping[str, str] = os.environ) -> bool:
    return environ.get("LOCAL_RANK", "0") == "0"
