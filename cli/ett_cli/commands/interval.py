"""`ett interval`: the checkpoint interval that wastes least. Reads arguments, prints, no state."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett interval`."""
    parser.epilog = (
        "The optimum is sqrt(2 * B * T / N) (Young 1974; Daly 2006): a save every I seconds costs B * T / I, "
        "and N failures lose I / 2 each, plus what was still uploading."
    )
    parser.add_argument(
        "--blocking-s", type=float, required=True, metavar="B", help="seconds one save blocks the trainer"
    )
    rate = parser.add_mutually_exclusive_group(required=True)
    rate.add_argument("--failures", type=float, metavar="N", help="failures in the training time")
    rate.add_argument("--mtbf-s", type=float, metavar="M", help="or: mean seconds between failures")
    parser.add_argument(
        "--train-s", type=float, metavar="T", help="training time in seconds (with --mtbf-s: default one day)"
    )
    parser.add_argument(
        "--upload-s", type=float, default=0.0, metavar="U", help="seconds from a save to its durability"
    )
    parser.add_argument(
        "--interval-s", type=float, metavar="I", help="the interval in use, to compare with the optimum"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the optimum and what it wastes; 2 where a figure makes no sense."""
    try:
        answer = _answer(arguments)
    except ValueError as error:
        print(f"ett interval: {error}", file=sys.stderr)
        return 2
    print(json.dumps(answer, indent=1) if arguments.json else render(answer))
    return 0


def _answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures that are printed, by the names that `--json` shows."""
    from ett_core.intervals import cautions, optimal_interval_s, wasted

    costs = _costs(arguments)
    best = wasted(costs)
    answer: dict[str, Any] = {
        "optimal_interval_s": optimal_interval_s(costs),
        "wasted_s": best.total_s,
        "wasted_percent": best.percent,
        "wasted_blocking_s": best.blocking_s,
        "wasted_lost_s": best.lost_s,
        "checkpoints": best.checkpoints,
        "blocking_s": costs.blocking_s,
        "failures": costs.failures,
        "mtbf_s": costs.mtbf_s,
        "train_s": costs.train_s,
        "upload_s": costs.upload_s,
        "cautions": cautions(costs),
    }
    if arguments.interval_s is not None:
        now = wasted(costs, arguments.interval_s)
        answer["current"] = {
            "interval_s": now.interval_s,
            "wasted_s": now.total_s,
            "wasted_percent": now.percent,
            "saving_s": now.total_s - best.total_s,
        }
    return answer


def _costs(arguments: argparse.Namespace) -> Any:  # noqa: ANN401 - the type is imported when named
    from ett_core.intervals import DAY_S, Costs, costs_from_mtbf

    if arguments.mtbf_s is not None:
        return costs_from_mtbf(
            blocking_s=arguments.blocking_s,
            mtbf_s=arguments.mtbf_s,
            train_s=DAY_S if arguments.train_s is None else arguments.train_s,
            upload_s=arguments.upload_s,
        )
    if arguments.train_s is None:
        raise ValueError("--failures needs --train-s: the time in which they happen")
    return Costs(
        blocking_s=arguments.blocking_s,
        failures=arguments.failures,
        train_s=arguments.train_s,
        upload_s=arguments.upload_s,
    )


def render(answer: dict[str, Any]) -> str:
    """The answer as a few lines for people."""
    lines = []
    share = f"{answer['wasted_s']:,.1f} s ({answer['wasted_percent']:.3f} %)"
    if answer["optimal_interval_s"] is not None:
        lines = [
            f"Save every {answer['optimal_interval_s']:,.1f} s.",
            f"That wastes {share} of {answer['train_s']:,.0f} s:",
            f"  blocked by {answer['checkpoints']:,.1f} saves: {answer['wasted_blocking_s']:,.1f} s",
            f"  lost in {_failures(answer['failures'])}: {answer['wasted_lost_s']:,.1f} s",
        ]
    current = answer.get("current")
    if current:
        lines.append(
            f"Now, every {current['interval_s']:,.1f} s: {current['wasted_s']:,.1f} s "
            f"({current['wasted_percent']:.3f} %), {current['saving_s']:,.1f} s more than needed."
        )
    return "\n".join([*lines, *answer["cautions"]])


def _failures(count: float) -> str:
    """A number of failures, which may be a fraction.

    >>> _failures(28800.0), _failures(2.5), _failures(1.0)
    ('28,800 failures', '2.5 failures', '1 failure')
    """
    if count == 1:
        return "1 failure"
    return f"{count:,.0f} failures" if count >= 100 else f"{count:g} failures"  # noqa: PLR2004 - whole enough
