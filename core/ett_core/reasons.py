"""Why something failed, in the words of the system where it was that which refused. Pure."""

from __future__ import annotations

import errno


def reason_of(error: Exception) -> str:
    """What the system says of an error, else what that says itself.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "/x")), reason_of(ValueError("no number"))
    ('No such file or directory', 'no number')
    """
    return getattr(error, "strerror", None) or str(error)


def reason_within(error: Exception) -> str:
    """The same as the end of a sentence.

    >>> reason_within(FileNotFoundError(2, "No such file or directory", "/x"))
    'no such file or directory'
    """
    reason = reason_of(error)
    return reason[:1].lower() + reason[1:]


def listening_reason(error: OSError | UnicodeError) -> str:
    """Why an address cannot be listened on.

    >>> listening_reason(OSError(errno.EADDRINUSE, "Address already in use"))
    'the port is in use'
    """
    if isinstance(error, UnicodeError):
        return "that is no name of a host"
    return "the port is in use" if error.errno == errno.EADDRINUSE else reason_of(error)
