"""Versions of what a training process runs on, from the metadata of installed packages."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("torch", "torchrec", "ettwatch")


def installed_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Version by name, for Python and those packages that are installed; imports none of them."""
    found = {package: _version(package) for package in packages}
    return {"python": platform.python_version(), **{name: text for name, text in found.items() if text}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
