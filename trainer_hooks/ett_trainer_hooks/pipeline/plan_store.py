"""The sharding plan of an earlier start, used again where nothing that it was made for has changed.

Planning takes seconds to minutes and a broadcast of the plan; a restart in the same circumstances
would come to the same plan. So it is kept in a directory, one file a context (`plan-CONTEXT.json`):
versions, topology, tables, sharders, constraints. At a restart every rank reads the file for itself
and the ranks compare digests in one small all-reduce; nothing is broadcast. Whatever does not fit, on
any rank, makes all of them plan anew, and each rank tells why by a decision event.

The directory may be shared by all hosts or be one on each host: the first rank of every host writes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.distributed as dist
from torchrec.distributed.types import ShardingPlan

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.agreement import all_agree
from ett_trainer_hooks.pipeline.plan_context import Context, context_of, difference, memory_difference
from ett_trainer_hooks.pipeline.plan_format import Tables, restored, stored

FORMAT = 1
KEPT = 16
"""Plans of other contexts that stay in a directory; the oldest goes first."""
READABLE = 0o644
"""A plan is no secret, and the ranks of another user may share the directory."""

USED = "the stored sharding plan is used"
MADE = "the sharding plan is made anew"
NOT_STORED = "the sharding plan is not stored"


class UnusablePlanError(ValueError):
    """A stored plan is not there, is damaged, or was made for something else; says which."""


class _Body(msgspec.Struct, frozen=True):
    context: Context
    tables: Tables


class _File(msgspec.Struct, frozen=True):
    format: int
    sha256: str
    body: msgspec.Raw


class PlanStore:
    """The plans in one directory, which need not exist yet."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def load(self, context: Context) -> tuple[ShardingPlan, str]:
        """The plan made for a context, and the digest of its file.

        Raises:
            UnusablePlanError: there is none that can be used.
        """
        path = self._path(context)
        try:
            file = msgspec.json.decode(path.read_bytes(), type=_File)
        except FileNotFoundError:
            raise UnusablePlanError(self._absence(context)) from None
        except (OSError, msgspec.DecodeError) as error:
            raise UnusablePlanError(f"{path} cannot be read: {error}") from error
        if file.format != FORMAT:
            raise UnusablePlanError(f"{path} has format {file.format}, not {FORMAT}")
        if sha256(file.body).hexdigest() != file.sha256:
            raise UnusablePlanError(f"{path} is damaged: its content does not have the hash that it names")
        try:
            body = msgspec.json.decode(file.body, type=_Body)
            plan = restored(body.tables)
        except (ValueError, KeyError) as error:
            raise UnusablePlanError(f"{path} holds no plan for this torchrec: {error}") from error
        if changed := _changed(body.context, context):
            raise UnusablePlanError(f"{path} was made for something else: {changed}")
        return plan, file.sha256

    def save(self, context: Context, plan: ShardingPlan) -> None:
        """Keep a plan for its context: whole or not at all.

        Raises:
            ValueError: the plan holds what has no place in the format.
            OSError: the directory does not take it.
        """
        body = msgspec.json.encode(_Body(context, stored(plan)))
        data = msgspec.json.encode(_File(FORMAT, sha256(body).hexdigest(), msgspec.Raw(body)))
        self._root.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._root, prefix=".plan-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), READABLE)
                os.fsync(file.fileno())
            Path(name).replace(self._path(context))
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        for old in self._newest_first()[KEPT:]:
            old.unlink(missing_ok=True)

    def _path(self, context: Context) -> Path:
        return self._root / f"plan-{key_of(context)}.json"

    def _newest_first(self) -> list[Path]:
        found = []
        for path in self._root.glob("plan-*.json"):
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found, reverse=True)]

    def _absence(self, context: Context) -> str:
        """Why there is no plan for a context: what the newest of the others was made for."""
        for path in self._newest_first():
            try:
                file = msgspec.json.decode(path.read_bytes(), type=_File)
                other = msgspec.json.decode(file.body, type=_Body).context
            except (OSError, msgspec.DecodeError):
                continue
            return (
                f"none is stored in {self._root} for this start; since the newest: {_changed(other, context)}"
            )
        return f"none is stored in {self._root}"


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
        except (OSError, ValueError) as error:
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
    except UnusablePlanError as why:
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
