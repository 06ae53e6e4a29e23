"""What commands print is shown by a terminal, never obeyed: names and words of jobs may hold anything.

One wrapper around each of standard output and standard error for the time of a command. Bytes that
go to their `buffer` (events, the output of a job) stay as they are.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from ett_core.plain_text import plain


class Shown:
    """A stream of text without what a terminal would obey; for the rest the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text as it is to be seen."""
        self._stream.write(plain(text))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write each of the texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        """As the stream has it."""
        return getattr(self._stream, name)


@contextmanager
def shown() -> Iterator[None]:
    """Whatever is printed meanwhile is shown; what the encoding of the output cannot say is an escape."""
    with ExitStack() as stack:
        if sys.stdout is not None:  # None where whoever started this has closed it
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors="backslashreplace")
            stack.enter_context(redirect_stdout(cast("TextIO", Shown(sys.stdout))))
        if sys.stderr is not None:
            stack.enter_context(redirect_stderr(cast("TextIO", Shown(sys.stderr))))
        yield
