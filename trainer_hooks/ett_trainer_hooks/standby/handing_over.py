"""A rank that was just started hands its program over to the standby that waits, and ends as it does.

Runs at the very start of the interpreter, loaded by itself from `sitecustomize`: the standard library
only, and any Python 3 can read it. Until the standby has said that it fits nothing has happened, and
the process goes on as it would have anyway. Afterwards this process only waits: signals go on to the
standby, and the way in which that ends is the way in which this one does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys

TYPE_CHECKING = False  # the module of that name takes time to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

PLACE = "ETT_STANDBY"
"""The variable that names the directory of the sockets."""
ASKED = "ETT_STANDBY_ASKED"
"""Set by a rank that has asked for a standby: what it starts is not the rank."""
PATIENCE_S = 5.0
PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
WITH_WORD = ("-W", "-X", "--check-hash-based-pycs")
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
STANDARD = (0, 1, 2)


def hand_over(environ: Mapping[str, str]) -> None:
    """End as the standby of this local rank does, which runs the program; returns where there is none."""
    path = socket_path(environ)
    if not path or ASKED in environ or not is_ours(os.path.dirname(path)):  # noqa: PTH120
        return
    if not os.path.exists(path):  # noqa: PTH110
        begin_without(path)
        return
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        line.settimeout(PATIENCE_S)
        line.connect(path)
        ask(line, request(environ))
        if line.recv(16) != b"fits":
            line.close()
            return
    except (OSError, ValueError, AttributeError):
        line.close()
        return
    line.settimeout(None)
    before = {n: signal.signal(n, lambda number, _: tell(line, bytes([number]))) for n in passed_on()}
    try:
        line.send(b"go")
    except OSError:  # the keeper is gone, or would wait no longer
        for number, handler in before.items():
            signal.signal(number, handler)
        line.close()
        return
    end_as(line.recv(16))


def socket_path(environ: Mapping[str, str]) -> str:
    """Where the standby of this local rank listens, if one does; nothing where none is meant.

    >>> socket_path({"ETT_STANDBY": "/run/x", "LOCAL_RANK": "1"}), socket_path({"LOCAL_RANK": "1"})
    ('/run/x/1.socket', '')
    """
    place, local_rank = environ.get(PLACE, ""), environ.get("LOCAL_RANK", "")
    return os.path.join(place, local_rank + ".socket") if place and local_rank.isdigit() else ""  # noqa: PTH118


def begin_without(path: str) -> None:
    """Have the launcher end a standby that is not ready: this start must not wait for what that one holds.

    Only the program that has asked for it does, and none that such a program has started.
    """
    try:
        with open(wanted_path(path), "rb") as file:  # noqa: PTH123
            wanted = json.load(file)
        if wanted["argv"] == sys.orig_argv:
            os.unlink(wanted_path(path))  # noqa: PTH108
    except (OSError, ValueError, KeyError):  # none was asked for
        pass


def wanted_path(socket_path: str) -> str:
    """Where a rank says what it was started with, beside the socket.

    >>> wanted_path("/run/x/1.socket")
    '/run/x/1.wanted'
    """
    return os.path.splitext(socket_path)[0] + ".wanted"  # noqa: PTH122


def is_ours(place: str) -> bool:
    """The directory is there, it belongs to this user, and nobody else may enter it."""
    try:
        found = os.stat(place)  # noqa: PTH116
    except OSError:
        return False
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077 == 0


def request(environ: Mapping[str, str]) -> dict[str, Any]:
    """All that the program would have been started with."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "argv": sys.orig_argv,
        "environ": dict(environ),
        "started_with": started_with(),
        "cwd": os.getcwd(),  # noqa: PTH109
        "umask": mask,
        "ignored": [n for n in by_number(PASSED_ON) if signal.getsignal(n) == signal.SIG_IGN],
        "surroundings": surroundings(),
    }


def started_with() -> dict[str, str]:
    """The variables that this process was started with, whatever was changed since."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
        pairs = [word.decode("utf-8", "replace").partition("=") for word in file.read().split(b"\0") if word]
    return {name: text for name, _, text in pairs}


def surroundings() -> dict[str, Any]:
    """What a process can have of its own and a standby cannot take over: it must have the same."""
    import resource  # noqa: PLC0415 - only where it is needed

    limits = {
        name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name[:7] == "RLIMIT_"
    }
    return {
        "the interpreter": [sys.executable, sys.version, [str(flag) for flag in sys.flags]],
        "the user": [os.getresuid(), os.getresgid(), sorted(os.getgroups())],
        "a limit (ulimit)": sorted(limits.items()),
        "the processors it may use": sorted(os.sched_getaffinity(0)),
        "a namespace": [os.readlink("/proc/self/ns/" + name) for name in NAMESPACES],  # noqa: PTH115
    }


def ask(line: socket.socket, wanted: Mapping[str, Any]) -> None:
    """Send a request, which may be long, and the standard streams."""
    text = os.memfd_create("ett-standby")
    try:
        os.write(text, json.dumps(wanted).encode())
        socket.send_fds(line, [b"request"], [text, *STANDARD])
    finally:
        os.close(text)


def passed_on() -> list[int]:
    """The signals that go on to the standby: those that this process does not ignore."""
    return [number for number in by_number(PASSED_ON) if signal.getsignal(number) != signal.SIG_IGN]


def by_number(names: Iterable[str]) -> list[int]:
    """Signals by their numbers.

    >>> by_number(["SIGTERM"])
    [15]
    """
    return [int(getattr(signal, name)) for name in names]


def tell(line: socket.socket, words: bytes) -> None:
    """Say something to the keeper; where it is gone, its end is told by the line."""
    try:  # noqa: SIM105 - contextlib takes time to import
        line.send(words)
    except OSError:
        pass


def end_as(told: bytes) -> None:
    """End with an exit status, or by a signal where it is below 0; without a word, by SIGKILL."""
    status = int(told) if told else -int(signal.SIGKILL)
    if status >= 0:
        os._exit(status)
    import resource  # noqa: PLC0415

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
    os.kill(os.getpid(), -status)
    os._exit(128 - status)


def parted(argv: Sequence[str]) -> tuple[list[str], str, str, list[str]] | None:
    """The options of the interpreter, `-m` where a module is run, the program, and its arguments.

    >>> parted(["python", "-u", "train.py", "-m", "x"])
    (['-u'], '', 'train.py', ['-m', 'x'])
    >>> parted(["python", "-X", "dev", "-m", "train", "--steps", "3"])
    (['-X', 'dev'], '-m', 'train', ['--steps', '3'])
    >>> parted(["python", "-c", "print()"]), parted(["python"])
    (None, None)
    """
    options: list[str] = []
    words = list(argv[1:])
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "-m" and words:
            return options, word, words[0], words[1:]
        if word in WITH_WORD and words:
            options += [word, words.pop(0)]
        elif word in ("-u", "-B", "-O", "-OO", "-q"):
            options.append(word)
        else:
            return None
    return (options, "", words[0], words[1:]) if words else None
