"""`ett simulate`: the events of a fleet that does not exist, for tests and to look at. Prints, no state."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ett_cli.saying import complain
from ett_cli.token_file import add_token_file

if TYPE_CHECKING:
    from ett_cli.simulate.fleet import Fleet
    from ett_cli.simulate.settings import Scenario
    from ett_cli.simulate.sinks import Sink
    from ett_cli.simulate.truth import JobTruth
    from ett_cli.simulate.voices import Told
    from ett_cli.simulate.words import Pulse

CHOSEN = ("jobs", "days", "ranks", "seed", "report_s", "node_failures", "train_hours", "disorder", "skew")
Say: TypeAlias = "Callable[[str], None]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett simulate`."""
    from ett_cli.simulate.settings import SCENARIOS

    names = "\n".join(f"  {name:<11} {text}" for name, (text, _) in SCENARIOS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    same = "The same scenario, options, seed and end give the same events, byte for byte."
    parser.epilog = f"scenarios:\n{names}\n\n{same}"
    parser.add_argument(
        "--scenario", choices=[*SCENARIOS], default="small", help="what happens (default: %(default)s)"
    )
    parser.add_argument("--out", metavar="DIR", help="write journals to a new directory (-: standard output)")
    parser.add_argument("--exporter", metavar="URL", help="send to an exporter, as fast as it acknowledges")
    add_token_file(parser)
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write what is true of each job, as JSON")
    parser.add_argument(
        "--victims",
        type=int,
        metavar="N",
        help="show what preempting one job at N moments would lose: any, or the one with least unsaved",
    )
    parser.add_argument("--live", action="store_true", help="go on after the window, by the clock")
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="X",
        help="with --live: so many times as fast (default: 1)",
    )
    parser.add_argument(
        "--live-hours",
        type=float,
        default=24.0,
        metavar="H",
        help="with --live: simulated hours (default: 24)",
    )
    parser.add_argument("--end", metavar="TIME", help="end of the window: Unix seconds or ISO (default: now)")
    parser.add_argument("--seed", type=int, metavar="N", help="another seed is another fleet (default: 0)")
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs submitted in the window")
    parser.add_argument("--days", type=float, metavar="D", help="length of the window in days")
    parser.add_argument("--ranks", type=int, metavar="N", help="largest world size, at most 1024")
    parser.add_argument("--report-s", type=float, metavar="S", help="seconds between two reports of a leader")
    parser.add_argument("--train-hours", type=float, metavar="H", help="median training time of a job")
    parser.add_argument(
        "--node-failures", type=float, metavar="N", help="failures of hardware in 1,000 node-days"
    )
    parser.add_argument("--disorder", type=float, metavar="P", help="share of lines that come late or twice")
    parser.add_argument("--skew", type=float, metavar="P", help="share of nodes whose clock is wrong")


def run(
    arguments: argparse.Namespace,
    *,
    wall: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Simulate; returns 1 where events could not be delivered, 2 for a setting that makes no sense."""
    from ett_cli.simulate.fleet import Fleet
    from ett_cli.simulate.settings import scenario
    from ett_cli.simulate.sinks import SinkError
    from ett_cli.simulate.victims import table, victims
    from ett_cli.simulate.words import Pulse, silence, summary, to_look_at

    try:
        _check(arguments)
        chosen = scenario(arguments.scenario, **{name: getattr(arguments, name) for name in CHOSEN})
        end_s = int(wall()) if arguments.end is None else moment(arguments.end)
        fleet = Fleet(chosen, round(end_s * 1000))
        sink = _sink(arguments, wall=wall, sleep=sleep)
    except ValueError as error:
        return complain("simulate", error, 2)
    say = partial(print, file=sys.stderr if arguments.out == "-" else sys.stdout, flush=True)
    try:
        _begin(arguments, chosen, say)
        if arguments.live:
            return _play(arguments, fleet, sink, end_s, say, wall=wall, sleep=sleep)
        truths = _tell(fleet, sink, Pulse(say, wall))
        if arguments.truth is not None:
            arguments.truth.write_bytes(_as_json(arguments.scenario, fleet, end_s, truths))
    except SinkError as error:
        return complain("simulate", error, 1)
    except KeyboardInterrupt:
        return complain("simulate", "ended by hand; what was delivered stays", 1)
    except OSError as error:
        return complain("simulate", _unwritten(error), 1)
    say("\n".join(summary(arguments.scenario, chosen, end_s, truths)))
    if arguments.exporter:
        if running := sum(truth.outcome == "running" for truth in truths):
            say(f"  {silence(running)}")
        say(to_look_at(arguments.exporter, arguments.token_file))
    if arguments.victims is not None:
        say("\n".join(table(victims(fleet, arguments.victims))))
    return 0


def _unwritten(error: OSError) -> str:
    """What could not be written, and why; where whoever read has left the error goes on instead."""
    if isinstance(error, BrokenPipeError):
        raise error
    return f"{error.filename}: {error.strerror}"


def _begin(arguments: argparse.Namespace, chosen: Scenario, say: Say) -> None:
    """Say what is about to happen, where anything goes anywhere, and how it is looked at meanwhile."""
    from ett_cli.simulate.words import beginning, to_look_at

    speed = arguments.speed if arguments.live else None
    if arguments.exporter is not None:
        say(beginning(arguments.scenario, chosen, "sends", arguments.exporter, speed))
        say(to_look_at(arguments.exporter, arguments.token_file))
    elif arguments.out is not None:
        where = "standard output" if arguments.out == "-" else arguments.out
        say(beginning(arguments.scenario, chosen, "writes", where, speed))


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together.

    Raises:
        ValueError: the message names the options.
    """
    wanted = (arguments.out, arguments.exporter, arguments.truth, arguments.victims)
    if all(each is None for each in wanted):
        raise ValueError("--out DIR, --exporter URL, --truth FILE or --victims N is needed: where to put it")
    if arguments.out is not None and arguments.exporter is not None:
        raise ValueError("--out and --exporter exclude each other; 'ett ship' sends journals")
    if arguments.live and arguments.truth is not None:
        raise ValueError("--truth is told of a window that is over; leave out --live")
    if arguments.victims is not None and (arguments.live or arguments.victims < 1):
        raise ValueError("--victims needs a number of moments above 0 in a window that is over")
    if arguments.live and arguments.end is not None:
        raise ValueError("--live goes on from now; leave out --end")
    if not 0.1 <= arguments.speed <= 10_000:  # noqa: PLR2004 - as the message says
        raise ValueError(f"--speed must be between 0.1 and 10000, not {arguments.speed:g}")
    if not 0 < arguments.live_hours <= 24 * 366:
        raise ValueError(f"--live-hours must be above 0, at most a year, not {arguments.live_hours:g}")


def moment(text: str) -> float:
    """Unix seconds of a moment written as such or in ISO 8601 (UTC unless it says otherwise).

    Raises:
        ValueError: it is neither.

    >>> moment("1764000000"), moment("2025-11-24T16:00:00Z"), moment("2025-11-24 16:00")
    (1764000000.0, 1764000000.0, 1764000000.0)
    """
    problem = f"--end needs Unix seconds or a moment such as 2026-11-29T12:00:00Z, not {text!r}"
    try:
        seconds = float(text)
    except ValueError:
        try:
            told = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError as error:
            raise ValueError(problem) from error
        seconds = (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()
    if not 1e8 < seconds < 4e9:  # noqa: PLR2004 - moments that events may have, with room for the window
        raise ValueError(problem)
    return seconds


def _sink(
    arguments: argparse.Namespace, *, wall: Callable[[], float], sleep: Callable[[float], None]
) -> Sink:
    from ett_cli.simulate.sinks import Journals, Nowhere, Sender, Stream
    from ett_core.credentials import token_source
    from ett_trainer_hooks.shipping.transport import poster

    if arguments.exporter is not None:
        post = poster(arguments.exporter, token=token_source(arguments.token_file))
        return Sender(post, wall=wall, monotonic=wall, sleep=sleep)
    if arguments.out == "-":
        return Stream(sys.stdout.buffer)
    return Nowhere() if arguments.out is None else Journals(Path(arguments.out))


def _tell(fleet: Fleet, sink: Sink, pulse: Pulse) -> list[JobTruth]:
    """Deliver the events of the window, job by job; what is true of them."""
    from ett_cli.simulate.words import LOOKED_EVERY, of_jobs

    until_ms = fleet.scenario.window_ms
    truths = []
    events = 0
    for done, story in enumerate(fleet.stories()):
        for _, event in fleet.told(story, until_ms):
            sink.take(event)
            events += 1
            if events % LOOKED_EVERY == 0:
                pulse.beat(partial(of_jobs, done, fleet.scenario.jobs, events))
        sink.flush()
        truth = story.truth(until_ms)
        if truth is not None:
            truths.append(truth)
    return truths


def _play(  # noqa: PLR0913 - the world is injected
    arguments: argparse.Namespace,
    fleet: Fleet,
    sink: Sink,
    end_s: float,
    say: Say,
    *,
    wall: Callable[[], float],
    sleep: Callable[[float], None],
) -> int:
    from ett_cli.simulate.live import play
    from ett_cli.simulate.words import LOOKED_EVERY, Pulse, is_now, of_past

    window_ms = fleet.scenario.window_ms
    begin = end_s - window_ms / 1000
    pulse = Pulse(say, wall)

    def noted(told: Iterable[Told]) -> Iterator[Told]:
        for events, each in enumerate(told):
            if events % LOOKED_EVERY == 0 and each[0] < window_ms:
                pulse.beat(partial(of_past, each[0] / window_ms, events))
            yield each

    told = noted(fleet.merged(window_ms + round(arguments.live_hours * 3_600_000)))
    count = play(
        told,
        sink,
        begin=begin,
        now=end_s,
        speed=arguments.speed,
        wall=wall,
        sleep=sleep,
        caught_up=lambda events: say(is_now(events)),
    )
    say(f"ett simulate: {count:,} events delivered")
    return 0


def _as_json(name: str, fleet: Fleet, end_s: float, truths: Sequence[JobTruth]) -> bytes:
    import msgspec

    told = {
        "scenario": name,
        "seed": fleet.scenario.seed,
        "begin": end_s - fleet.scenario.window_ms / 1000,
        "end": end_s,
        "jobs": truths,
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n"
