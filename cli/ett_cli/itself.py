"""How this program starts itself as another process."""

from __future__ import annotations

import sys


def ett(*words: str) -> list[str]:
    """A command line of `ett`, in this interpreter."""
    return [sys.executable, "-c", "import sys; from ett_cli.main import main; sys.exit(main())", *words]
