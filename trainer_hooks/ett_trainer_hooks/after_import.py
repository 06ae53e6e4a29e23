"""Does something right after a module was imported, before its importer goes on.

A finder at the front of `sys.meta_path`; it finds through the others and leaves their loaders in
place. Imports come from any thread, and none fails for it: where a loader does not let itself be
followed, its module is waited for in vain. When there is nothing left to wait for the finder finds
nothing and stays: were it taken out of the list, a thread that goes through that at the moment would
pass over the finder behind it, and not find its module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], None]


class AfterImport(MetaPathFinder):
    """Runs an action on each module named, once; those imported already get it at once."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = dict(actions)
        self._looking: set[str] = set()
        for name in [name for name in actions if name in sys.modules]:
            self._actions.pop(name)(sys.modules[name])
        if self._actions:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that another finder has for a module of ours; None for all others."""
        if fullname not in self._actions or fullname in self._looking:  # another of our kind asks back
            return None
        self._looking.add(fullname)
        try:
            spec = self._found(fullname, path, target)
        finally:
            self._looking.discard(fullname)
        if spec is not None and spec.loader is not None:
            with suppress(AttributeError):
                self._follow(spec)
        return spec

    def _found(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        finders = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        specs = (finder.find_spec(fullname, path, target) for finder in finders)
        return next((spec for spec in specs if spec is not None), None)

    def _follow(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        assert loader is not None  # noqa: S101 - for the type checker
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            action = self._actions.pop(spec.name, None)
            if action is not None:
                action(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
