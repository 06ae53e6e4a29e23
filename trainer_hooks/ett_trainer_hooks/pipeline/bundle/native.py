"""The files of native code of this process, which the compiler's own artifacts leave out on CPUs.

They are the libraries that are mapped from the compiler's cache directory, and the small ones by
which it has tried out the processor. Sources and headers stay away: where the library is there,
nothing reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ett_trainer_hooks.pipeline.bundle.files import write_whole

MAPS = Path("/proc/self/maps")
PROBE_SOURCE = 4096
"""Bytes of the source of a probe at most: it only includes a header or names an instruction."""
PROBES = 64
"""Probes at most: one a set of instructions and version of the compiler."""


def native_files(cache_dir: Path, maps: Path = MAPS) -> dict[str, bytes]:
    """Content of each file, by path in the cache directory; one that vanishes is left out."""
    contents = {name: _content(cache_dir / name) for name in native_names(cache_dir, maps)}
    return {name: data for name, data in contents.items() if data is not None}


def native_names(cache_dir: Path, maps: Path = MAPS) -> list[str]:
    """Paths of the files in the cache directory, in order."""
    root = cache_dir.resolve()
    return sorted({path.relative_to(root).as_posix() for path in (*_mapped(root, maps), *_probes(root))})


def install_native(files: Mapping[str, bytes], cache_dir: Path) -> int:
    """Put files into the cache directory where there are none yet; returns the bytes written.

    Raises:
        OSError: they cannot be written there, or a link leads out of it.
    """
    root, written = cache_dir.resolve(), 0
    for name, data in files.items():
        path = root / name
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.resolve().is_relative_to(root):
            raise OSError(f"{path.parent} leads out of {root}")
        write_whole(path, data, mode=0o700, durable=False)
        written += len(data)
    return written


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _mapped(root: Path, maps: Path) -> Iterator[Path]:
    for line in maps.read_text(errors="replace").splitlines():
        name = line[line.find("/") :] if "/" in line else ""
        if name.endswith(".so") and Path(name).is_relative_to(root):
            yield Path(name)


def _probes(root: Path) -> list[Path]:
    """Libraries whose source is tiny and which no graph needs, newest last."""
    found = [
        library
        for source in root.glob("??/c*.cpp")
        if not source.name.endswith(".main.cpp")
        and source.stat().st_size <= PROBE_SOURCE
        and (library := source.with_suffix(".so")).is_file()
    ]
    return sorted(found, key=lambda path: path.stat().st_mtime)[-PROBES:]
