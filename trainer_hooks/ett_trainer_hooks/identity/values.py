"""Values of environment variables: strict for our own, lenient for everybody else's.

Pure reading of a mapping. A variable of ours (`ETT_...`) that cannot be understood is an error that
names it; one of a scheduler or a framework is left out and remembered in `ignored`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

OURS = "ETT_"
LARGEST = 2**32 - 1
"""Slurm numbers its special steps from the top of this range downwards."""
DIGITS = len(str(LARGEST))


class Values:
    """Reads one environment; `ignored` holds a sentence for each variable that was left out."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.ignored: dict[str, str] = {}

    def text(self, *names: str) -> str:
        """The first of the variables that holds anything, without white space around it; else nothing.

        >>> Values({"POD_NAME": " ", "HOSTNAME": "n0 "}).text("POD_NAME", "HOSTNAME")
        'n0'
        """
        texts = (self._environ.get(name, "").strip() for name in names)
        return next(filter(None, texts), "")

    def number(self, *names: str) -> int | None:
        """The first of the variables that holds a whole number of 0 or more; None where none does.

        Raises:
            ValueError: a variable of ours holds something else.

        >>> Values({"RANK": "0", "SLURM_PROCID": "5"}).number("RANK", "SLURM_PROCID")
        0
        """
        return next((found for name in names if (found := self._number(name)) is not None), None)

    def moment(self, name: str) -> float | None:
        """Unix seconds in a variable; None where it holds none.

        Raises:
            ValueError: a variable of ours holds something else.
        """
        text = self.text(name)
        if not text:
            return None
        try:
            moment = float(text)
        except ValueError:
            moment = -1.0
        if 0 < moment < 4e9:  # noqa: PLR2004 - the range of UnixSeconds
            return moment
        self.refuse(name, "a time in Unix seconds")
        return None

    def names(self) -> Iterable[str]:
        """The variables that are set."""
        return self._environ.keys()

    def refuse(self, name: str, wanted: str) -> None:
        """Leave a variable out because it is not what is wanted.

        Raises:
            ValueError: the variable is ours.
        """
        problem = f"{name}={self.text(name)!r} is not {wanted}"
        if name.startswith(OURS):
            raise ValueError(problem)
        self.ignored[name] = f"{problem}; it is ignored"

    def _number(self, name: str) -> int | None:
        text = self.text(name)
        if not text:
            return None
        if text.isascii() and text.isdecimal() and len(text) <= DIGITS and int(text) <= LARGEST:
            return int(text)
        self.refuse(name, "a whole number of 0 or more")
        return None
