"""What compiled code depends on: the facts of an environment under which a bundle may be used.

Reads files of the system and asks the compiler for its version, once a process; torch is not
imported. Two environments with the same facts may exchange native code. The compiler's own keys
say `-march=native` and no more, so the processor is a fact here.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import msgspec

PROC = Path("/proc")
ASK_S = 10.0

TITLES: Mapping[str, str] = {
    "torch": "torch",
    "torch_at": "place of torch",
    "triton": "Triton",
    "python": "Python",
    "python_at": "place of Python's headers",
    "machine": "kind of machine",
    "cpu": "instructions of the processor",
    "glibc": "C library",
    "compiler": "C++ compiler",
    "gpu": "GPUs",
    "driver": "driver of the GPUs",
}
"""Every fact by its key, in the words of a person. Paths are facts: they stand in the commands by
which the compiler names its results."""


def environment(
    proc: Path = PROC,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[Sequence[str]], str] | None = None,
) -> dict[str, str]:
    """The facts of this environment, by the keys of `TITLES`; what is not there is empty."""
    facts = {
        "torch": _version("torch"),
        "torch_at": _place("torch"),
        "triton": _version("triton") or _version("pytorch-triton"),
        "python": str(sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag),
        "python_at": sysconfig.get_path("include"),
        "machine": platform.machine(),
        "cpu": _instructions(proc),
        "glibc": _glibc(),
        "compiler": (ask or _first_line)([environ.get("CXX") or "g++", "--version"]),
        "gpu": _gpus(proc),
        "driver": _line(proc / "driver/nvidia/version"),
    }
    return {key: facts[key] for key in TITLES}


def digest(facts: Mapping[str, str]) -> str:
    """A short name for the facts: 16 hexadecimal digits.

    >>> digest({"torch": "2.13"}) == digest({"torch": "2.13"}), len(digest({}))
    (True, 16)
    """
    return hashlib.sha256(msgspec.json.encode(dict(sorted(facts.items())))).hexdigest()[:16]


def differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """Each fact that differs, as a phrase; of lists of words only those that one side lacks.

    >>> differences({"torch": "2.12", "cpu": "avx avx2"}, {"torch": "2.13", "cpu": "avx sse"})
    ['torch is 2.13, was 2.12', 'instructions of the processor: without avx2, with sse']
    """
    keys = [key for key in {**TITLES, **theirs, **ours} if theirs.get(key, "") != ours.get(key, "")]
    return [_difference(key, theirs.get(key, ""), ours.get(key, "")) for key in keys]


def _difference(key: str, was: str, now: str) -> str:
    title = TITLES.get(key, key)
    if key != "cpu" or not was or not now:
        return f"{title} is {now or 'not known'}, was {was or 'not known'}"
    lost, gained = (set(one.split()) - set(two.split()) for one, two in ((was, now), (now, was)))
    parts = [
        f"{word} {' '.join(sorted(some))}" for word, some in (("without", lost), ("with", gained)) if some
    ]
    return f"{title}: {', '.join(parts)}"


def _version(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return ""


def _place(name: str) -> str:
    try:
        return str(distribution(name).locate_file(name))
    except PackageNotFoundError:
        return ""


def _instructions(proc: Path) -> str:
    """The processor's flags in order of name: `flags` on x86, `Features` on ARM."""
    for line in _text(proc / "cpuinfo").splitlines():
        name, _, words = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return " ".join(sorted(set(words.split())))
    return ""


def _glibc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library
        return ""


def _gpus(proc: Path) -> str:
    """The models of the GPUs, each once: a process may see some of them only."""
    models = {
        words.strip()
        for path in sorted(proc.glob("driver/nvidia/gpus/*/information"))
        for name, _, words in (line.partition(":") for line in _text(path).splitlines())
        if name == "Model"
    }
    return ", ".join(sorted(models))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _line(path: Path) -> str:
    return _text(path).partition("\n")[0].strip()


def _first_line(command: Sequence[str]) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, timeout=ASK_S, check=False, text=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return answer.stdout.partition("\n")[0].strip() if answer.returncode == 0 else ""
