"""The entry point of `ett`: finds the subcommand, imports only that one, runs it.

Exit statuses mean the same for all of them (`STATUSES`): 2 only where the command line, or the
environment that stands for a part of it, cannot work whatever there is to work on; it is refused before
anything is done. What a command was given to read and is not there, or holds nothing, is 1.
"""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
import signal
import sys
from collections.abc import Sequence

from ett_cli.saying import complain, lacking
from ett_cli.terminal import shown

GROUPS = {
    "to see it work": {
        "demo": "train a small TorchRec model, kill a rank, watch it recover",
        "simulate": "invent the events of a fleet, and the truth of where its time went",
    },
    "to observe a job": {
        "run": "run a training command under observation",
        "env": "print the variables that observe a job without a launcher",
        "ship": "send the journals of a directory to an exporter",
    },
    "to watch jobs": {
        "exporter": "serve ingest, /metrics and the query API",
        "dashboard": "serve the Streamlit app",
        "grafana": "make boards, alerts and provisioning files, and publish them to a Grafana",
    },
    "to know where the time went, and why": {
        "account": "print where the time of recorded jobs went",
        "diagnose": "say why a job ended, from its logs",
        "failures": "say what the failures of a fleet cost, and what is to blame",
        "report": "write a job or a fleet to one file of HTML",
        "import": "turn logs of jobs that were never instrumented into events",
    },
    "to waste less of it": {
        "train": "train a small TorchRec model with every part of the optimised pipeline",
        "interval": "compute the checkpoint interval that wastes least",
        "advise": "say what to tell the compiler, from what it compiled again",
        "cache": "list, verify and evict bundles of compiled code, and say why one was not used",
        "publish": "publish what a trainer has handed over, in a process and a job of its own",
    },
}
"""What somebody wants, to the subcommands for it, in the order of `ett --help`."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
"""Subcommand to the sentence that `ett --help` shows."""
STATUSES = """\
Exit status: 0 done; 1 it did not work, and a sentence says why; 2 the command line cannot work, and
nothing was done; 130 ended by Ctrl-C. 'ett run' and 'ett train' return that of the command they ran."""
INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ett`; returns the exit status (2 for a wrong command line)."""
    try:
        with shown():
            try:
                return _main(argv)
            finally:
                if sys.stdout is not None:  # None where whoever started this has closed it
                    sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - whoever read has left; flush at exit to nowhere
        return 1


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in words if not word.startswith("-")), None)
    if name not in COMMANDS or words[0] != name:
        parser = _parser()
        parser.parse_args(words)
        parser.print_help()
        return 0 if not words else 2
    try:
        return _run(name, words[1:])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("ett_"):
            raise
        return complain(name, lacking([error.name]), 1)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(name: str, words: Sequence[str]) -> int:
    command = importlib.import_module(module_of(name))
    parser = argparse.ArgumentParser(prog=f"ett {name}", description=COMMANDS[name])
    command.add_arguments(parser)
    status: int = command.run(parser.parse_args(words))
    return status


def module_of(name: str) -> str:
    """The module of a subcommand.

    >>> module_of("run"), module_of("import")
    ('ett_cli.commands.run', 'ett_cli.commands.import_')
    """
    return f"ett_cli.commands.{name}_" if keyword.iskeyword(name) else f"ett_cli.commands.{name}"


def _parser() -> argparse.ArgumentParser:
    from importlib.metadata import version

    parser = argparse.ArgumentParser(
        prog="ett",
        description="Effective Training Time: where every second of a training job goes.",
        epilog=f"{_listed()}\n\n'ett COMMAND --help' says more.\n{STATUSES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="ett [--version] COMMAND [ARGUMENT ...]",
    )
    parser.add_argument("--version", action="version", version=f"ettwatch {version('ettwatch')}")
    parser.add_argument("command", nargs="?", choices=[*COMMANDS], metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _listed() -> str:
    """All commands by what they are for."""
    width = max(map(len, COMMANDS))
    groups = [
        "\n".join([f"{aim}:", *(f"  {name:<{width}}  {text}" for name, text in group.items())])
        for aim, group in GROUPS.items()
    ]
    return "\n\n".join(groups)
