"""What the tests of bundles share: an entry, contents, and stores of both kinds."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ett_trainer_hooks.pipeline.bundle.contents import Contents
from ett_trainer_hooks.pipeline.bundle.entry import Entry, content_name
from ett_trainer_hooks.pipeline.bundle.store import BundleStore

FACTS = {"torch": "2.13", "cpu": "avx avx2", "compiler": "g++ 12"}
CONTENTS = Contents(b"artifacts of the compiler", {"ab/cab.main.so": b"native code"})


@pytest.fixture
def bundle() -> Callable[..., tuple[Entry, Contents]]:
    """Makes an entry and its contents; arguments replace fields of the entry."""

    def make(contents: Contents = CONTENTS, **fields) -> tuple[Entry, Contents]:
        artifacts = {"inductor": ["f1", "f2"], "aot_autograd": ["a1"]}
        standard = {
            "name": "dlrm",
            "local_rank": 0,
            "rank": 0,
            "job_id": "job",
            "made_at": 1000.0,
            "facts": FACTS,
            "settings": {},
            "compile_s": 16.0,
            "artifacts": artifacts,
            "native": sorted(contents.native),
            "content": content_name(artifacts, contents.hashes()),
            "sha256": "0" * 64,
            "size": 0,
        }
        return Entry(**{**standard, **fields}), contents

    return make


@pytest.fixture(params=["directory", "memory"])
def address(request, tmp_path: Path) -> Iterator[str]:
    """Where a store may lie: a new directory, or memory reached by fsspec."""
    if request.param == "directory":
        yield str(tmp_path / "store")
        return
    import fsspec  # noqa: PLC0415 - an extra

    root = f"/{uuid.uuid4().hex}"
    yield f"memory:/{root}"
    memory = fsspec.filesystem("memory")
    if memory.exists(root):
        memory.rm(root, recursive=True)


@pytest.fixture
def store(address: str) -> BundleStore:
    """An empty store."""
    return BundleStore(address)
