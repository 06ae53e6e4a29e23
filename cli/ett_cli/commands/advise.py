"""`ett advise`: what to tell the compiler, from what it did. Reads files or asks, prints; no state."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli.saying import complain, remark
from ett_cli.token_file import add_token_file
from ett_core.reasons import reason_within

if TYPE_CHECKING:
    from ett_cli.compile_answers import Get
    from ett_core.choosing import OperationAdvice
    from ett_core.events import AnyEvent, Cache
    from ett_core.shapes import Compilation
    from ett_core.tuning import KernelAdvice, Tuning


class AbsentError(Exception):
    """The job that is asked for is not in the journals; the message says so."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett advise`."""
    parser.epilog = (
        "Exit status: 0 if there was something to go by (whether there is anything to advise or not), "
        "1 if nothing, 2 for a wrong command line."
    )
    topics = parser.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    dynamic = topics.add_parser(
        "dynamic",
        help="sizes that vary: the exact TORCH_COMPILE_DYNAMIC_SOURCES, and how many graphs remain",
        description="From compilations that came again because a size differed: what to leave open.",
    )
    dynamic.add_argument(
        "places",
        nargs="*",
        metavar="PLACE",
        help="a directory that TORCH_TRACE or tlparse wrote, or one of its logs (*.log); "
        "or a journal of ettwatch, or a directory of them",
    )
    _add_sources(dynamic)
    autotune = topics.add_parser(
        "autotune",
        help="kernels that are tuned: the dearest, what won, and the shortened lists to paste",
        description="From the choices that Inductor has kept: which configurations of a list never won.",
    )
    autotune.add_argument(
        "places",
        nargs="*",
        metavar="PLACE",
        help="a cache directory of Inductor (TORCHINDUCTOR_CACHE_DIR), which has what won; "
        "or what TORCH_TRACE or tlparse wrote (a directory, or *.log), which has the seconds; "
        "or a journal of ettwatch, or a directory of them, which has what won and the seconds of all "
        "processes, and how much was tuned in each attempt",
    )
    _add_sources(autotune)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--exporter",
        metavar="URL",
        help="ask an exporter about the --job instead, such as http://127.0.0.1:9410",
    )
    add_token_file(parser)
    parser.add_argument(
        "--job", metavar="ID", help="the job, where journals hold several, or an exporter is asked"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the advice; 1 where there is nothing to go by, 2 where the job is not clear."""
    from ett_cli.asking import AskError

    try:
        return _autotune(arguments) if arguments.topic == "autotune" else _dynamic(arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        return complain("advise", f"{error.filename}: {reason_within(error)}", 1)
    except (AbsentError, AskError) as error:
        return complain("advise", error, 1)
    except ValueError as error:
        return complain("advise", error, 2)


def _autotune(arguments: argparse.Namespace) -> int:
    from ett_cli.tuning_words import as_object, render, render_asked, render_operations
    from ett_core.tuning import advise, asked_by_attempt, tunings_of

    kernels: list[KernelAdvice] = []
    operations: list[OperationAdvice] = []
    if get := _exporter(arguments):
        from ett_cli.compile_answers import ask_tuned

        asked = ask_tuned(get, arguments.job)
    else:
        places = [Path(place) for place in arguments.places]
        for place in places:
            place.stat()
        told = _told([place for place in places if _holds_journals(place)], arguments.job)
        kernels = advise(_tunings(places, tunings_of(told)))
        asked = asked_by_attempt(told)
        operations = _operations(places)
    if not kernels and not asked and not operations:
        return complain(
            "advise",
            "no kernel was tuned in there. Inductor tunes Triton kernels, on GPUs only, "
            "and keeps what won where several configurations were tried; with max-autotune it chooses "
            "among implementations, of which a trace tells.",
            1,
        )
    words = [render(kernels)] if kernels else []
    words += [render_operations(operations)] if operations else []
    words += [render_asked(asked, has_kernels=bool(kernels))] if asked else []
    print(
        json.dumps(as_object(kernels, asked, operations), indent=1) if arguments.json else "\n\n".join(words)
    )
    return 0


def _holds_journals(place: Path) -> bool:
    """A journal, or a directory with some."""
    files = place.rglob("*") if place.is_dir() else [place]
    return any(file.name.endswith((".jsonl", ".jsonl.gz")) for file in files)


def _told(places: Sequence[Path], job: str | None) -> list[Cache]:
    """What journals tell of caches."""
    from ett_core.events import AttemptStart, Cache

    events = _recorded(list(map(str, places)), job, (AttemptStart, Cache)) if places else []
    return [event for event in events if isinstance(event, Cache)]


def _tunings(places: Iterable[Path], recorded: Sequence[Tuning]) -> list[Tuning]:
    """Those of caches, then those of journals, then those of traces, of kernels that none before tells of.

    A cache knows where a kernel stands, a journal what won, a trace the seconds alone.
    """
    from ett_cli.autotune_caches import read_cache
    from ett_cli.autotune_traces import read_tunings
    from ett_cli.compile_traces import logs_below

    found = list(places)
    tunings = [tuning for place in found if place.is_dir() for tuning in read_cache(place)]
    traced = [tuning for place in found for log in logs_below(place) for tuning in read_tunings(log)]
    for others in (recorded, traced):
        known = {tuning.kernel for tuning in tunings}
        tunings += [tuning for tuning in others if not known & _names_of(tuning.kernel)]
    return tunings


def _operations(places: Iterable[Path]) -> list[OperationAdvice]:
    """What traces tell of choices among implementations."""
    from ett_cli.autotune_traces import read_choices
    from ett_cli.compile_traces import logs_below
    from ett_core.choosing import advise_choices

    return advise_choices(
        choice for place in places for log in logs_below(place) for choice in read_choices(log)
    )


def _names_of(kernel: str) -> set[str]:
    """Of a kernel of the program's own torch numbers the uses: `gather_0`."""
    return {kernel, kernel.rstrip("0123456789").removesuffix("_")}


def _dynamic(arguments: argparse.Namespace) -> int:
    from ett_cli.shape_words import as_object, render
    from ett_core.shapes import advise

    compilations, version = _found(arguments)
    if not compilations:
        nowhere = (
            f"no compilation of {arguments.job!r} is known to {arguments.exporter}"
            if arguments.exporter
            else "no compilation in there: neither a log of TORCH_TRACE nor a journal tells of one"
        )
        return complain("advise", f"{nowhere}.", 1)
    advice = advise(compilations, torch_version=version)
    print(json.dumps(as_object(advice, version), indent=1) if arguments.json else render(advice))
    return 0


def _found(arguments: argparse.Namespace) -> tuple[list[Compilation], str]:
    """All compilations, and the oldest torch that they were made with, from where the command line says.

    Raises:
        OSError: a place cannot be read.
        AbsentError: the journals hold other jobs only.
        AskError: the exporter has no answer.
        ValueError: it is not clear where to look, or about which job.
    """
    if get := _exporter(arguments):
        from ett_cli.compile_answers import ask_compilations

        return ask_compilations(get, arguments.job)
    return _gather(arguments.places, arguments.job)


def _exporter(arguments: argparse.Namespace) -> Get | None:
    """What asks the exporter; None where there are places to look in.

    Raises:
        ValueError: it is not clear where to look, or about which job.
    """
    if not arguments.exporter:
        if not arguments.places:
            raise ValueError("name a PLACE, or an --exporter with a --job")
        return None
    if arguments.places or not arguments.job:
        raise ValueError("--exporter takes a --job, and no PLACE beside it")
    from ett_cli.asking import getter
    from ett_core.credentials import token_source

    return getter(arguments.exporter, token_source(arguments.token_file))


def _gather(places: Sequence[str], job: str | None) -> tuple[list[Compilation], str]:
    """All compilations, and the oldest torch that they were made with.

    Raises:
        OSError: a place cannot be read.
        AbsentError: the journals hold other jobs only.
        ValueError: they hold several jobs, and none is asked for.
    """
    from ett_cli.compile_traces import LOG_SUFFIX, logs_below, read_trace
    from ett_cli.journals import STDIN
    from ett_core.shapes import oldest

    traces, journals = [], []
    for place in map(Path, places):
        if str(place) != STDIN:
            place.stat()
        found = [read_trace(log) for log in logs_below(place)]
        traces += found
        if place.suffix != LOG_SUFFIX and not any(trace.compilations for trace in found):
            journals.append(str(place))
    compilations = [item for trace in traces for item in trace.compilations]
    versions = [trace.torch_version for trace in traces]
    if journals:
        recorded, version = _from_journals(journals, job)
        compilations += recorded
        versions.append(version)
    return compilations, oldest(versions)


def _from_journals(places: Sequence[str], job: str | None) -> tuple[list[Compilation], str]:
    from ett_core.events import AttemptStart, Compile
    from ett_core.shapes import compilations_of, torch_version_of

    chosen = _recorded(places, job, (AttemptStart, Compile))
    return list(compilations_of(chosen)), torch_version_of(chosen)


def _recorded(places: Sequence[str], job: str | None, kinds: tuple[type[AnyEvent], ...]) -> list[AnyEvent]:
    """Events of these kinds of the one job that journals tell of, or of the one that is asked for.

    Raises:
        AbsentError: another one is asked for.
        ValueError: there are several, and none is asked for.
    """
    from ett_cli.journals import read_journals

    events: list[AnyEvent] = []
    for decoded in read_journals(places):
        for bad in decoded.bad:
            remark("advise", bad)
        events += [event for event in decoded.events if isinstance(event, kinds)]
    jobs = {event.job_id for event in events}
    if job is None and len(jobs) > 1:
        raise ValueError(f"{len(jobs)} jobs in there: choose one with --job, such as {min(jobs)}")
    if job is not None and job not in jobs:
        raise AbsentError(f"nothing of the job {job!r} in there")
    return [event for event in events if job in (None, event.job_id)]
