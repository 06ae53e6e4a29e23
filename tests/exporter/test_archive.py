"""The file in which old reports of jobs lie."""

from __future__ import annotations

import random
import resource

from ett_exporter.archive import PAGE, FileArchive


def test_what_is_put_comes_back_until_it_is_dropped():
    """Any mixture of sizes, kept and dropped in any order, comes back as it was; pages are used again."""
    source, archive = random.Random(1), FileArchive()
    held = {}
    for number in range(2000):
        data = source.randbytes(source.choice((0, 1, PAGE, PAGE + 1, 3000)))
        held[number] = (archive.put(data), data)
        if source.random() < 0.9:
            archive.drop(held.pop(source.choice(sorted(held)))[0])
    assert all(archive.get(handle) == data for handle, data in held.values())
    assert archive.bytes_used < 3 * sum(len(data) + PAGE for _, data in held.values())


def test_memory_is_used_where_the_file_cannot_grow():
    """What does not fit into the file is kept all the same."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    archive = FileArchive()
    small = archive.put(b"s" * PAGE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE, before[1]))
    try:
        large = archive.put(b"l" * 3 * PAGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (archive.get(small), archive.get(large)) == (b"s" * PAGE, b"l" * 3 * PAGE)
    archive.drop(large)
