"""`ett interval`: the checkpoint interval that wastes least. Reads arguments, prints, no state."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ett_cli.saying import complain

NODE_FAILURES = 6.5
"""Failures in 1,000 node-days that Kokolis et al. saw in a cluster of 16,000 accelerators."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett interval`."""
    parser.epilog = (
        "The optimum is sqrt(2 * (B + S) * T / N) (Young 1974; Daly 2006): a save every I seconds costs "
        "(B + S) * T / I, and N failures lose I / 2 each, plus what was still uploading."
    )
    parser.add_argument(
        "--blocking-s", type=float, required=True, metavar="B", help="seconds one save blocks the trainer"
    )
    parser.add_argument(
        "--slowed-s",
        type=float,
        default=0.0,
        metavar="S",
        help="seconds by which one save in the background slows the steps beside it (default 0)",
    )
    rate = parser.add_mutually_exclusive_group(required=True)
    rate.add_argument(
        "--failures", type=float, metavar="N", help="failures in that time, not before the loop"
    )
    rate.add_argument("--mtbf-s", type=float, metavar="M", help="or: mean seconds between failures")
    rate.add_argument("--nodes", type=float, metavar="N", help="or: nodes of the job, see --node-failures")
    parser.add_argument(
        "--node-failures",
        type=float,
        default=NODE_FAILURES,
        metavar="R",
        help=f"with --nodes: failures in 1,000 node-days (default {NODE_FAILURES:g})",
    )
    parser.add_argument(
        "--train-s",
        type=float,
        metavar="T",
        help="seconds in the loop, stalls aside (with --mtbf-s or --nodes: default one day)",
    )
    parser.add_argument(
        "--upload-s", type=float, default=0.0, metavar="U", help="seconds from a save to its durability"
    )
    parser.add_argument(
        "--restart-s", type=float, default=0.0, metavar="R", help="seconds from a failure back to the loop"
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
        return complain("interval", error, 2)
    print(json.dumps(answer, indent=1) if arguments.json else render(answer))
    return 0


def _answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures that are printed, by the names that `--json` shows."""
    from ett_core.intervals import (
        cautions,
        expected_ettr,
        optimal_interval_s,
        refined_interval_s,
        wasted,
    )

    costs = _costs(arguments)
    best = wasted(costs)
    answer: dict[str, Any] = {
        "optimal_interval_s": optimal_interval_s(costs),
        "refined_interval_s": refined_interval_s(costs),
        "expected_ettr": expected_ettr(costs),
        "wasted_s": best.total_s,
        "wasted_percent": best.percent,
        "wasted_blocking_s": best.blocking_s,
        "wasted_slowed_s": best.slowed_s,
        "wasted_lost_s": best.lost_s,
        "wasted_restart_s": best.recovery_s,
        "checkpoints": best.checkpoints,
        "blocking_s": costs.blocking_s,
        "slowed_s": costs.slowed_s,
        "failures": costs.failures,
        "mtbf_s": costs.mtbf_s,
        "train_s": costs.train_s,
        "upload_s": costs.upload_s,
        "restart_s": costs.recovery_s,
        "cautions": cautions(costs),
    }
    if arguments.interval_s is not None:
        now = wasted(costs, arguments.interval_s)
        answer["current"] = {
            "interval_s": now.interval_s,
            "wasted_s": now.total_s,
            "wasted_percent": now.percent,
            "saving_s": now.total_s - best.total_s,
            "expected_ettr": expected_ettr(costs, arguments.interval_s),
        }
    return answer


def _costs(arguments: argparse.Namespace) -> Any:  # noqa: ANN401 - the type is imported when named
    from ett_core.intervals import DAY_S, Costs, costs_from_mtbf, costs_from_nodes

    train_s = DAY_S if arguments.train_s is None else arguments.train_s
    given = {
        "blocking_s": arguments.blocking_s,
        "slowed_s": arguments.slowed_s,
        "train_s": train_s,
        "upload_s": arguments.upload_s,
        "recovery_s": arguments.restart_s,
    }
    if arguments.mtbf_s is not None:
        return costs_from_mtbf(mtbf_s=arguments.mtbf_s, **given)
    if arguments.nodes is not None:
        rate = arguments.node_failures
        return costs_from_nodes(nodes=arguments.nodes, failures_in_1000_node_days=rate, **given)
    if arguments.train_s is None:
        raise ValueError("--failures needs --train-s: the time in which they happen")
    return Costs(failures=arguments.failures, **given)


def render(answer: dict[str, Any]) -> str:
    """The answer as a few lines for people."""
    best = _of_best(answer) if answer["optimal_interval_s"] is not None else []
    now = _of_current(answer["current"]) if "current" in answer else []
    return "\n".join([*best, *now, *answer["cautions"]])


def _of_best(answer: dict[str, Any]) -> list[str]:
    share = f"{answer['wasted_s']:,.1f} s ({answer['wasted_percent']:.3f} %)"
    slowed = [f"  slowed beside them: {answer['wasted_slowed_s']:,.1f} s"] if answer["slowed_s"] else []
    restarts = [f"  restarted after them: {answer['wasted_restart_s']:,.1f} s"] if answer["restart_s"] else []
    return [
        f"Save every {answer['optimal_interval_s']:,.1f} s.",
        f"That wastes {share} of {answer['train_s']:,.0f} s:",
        f"  blocked by {answer['checkpoints']:,.1f} saves: {answer['wasted_blocking_s']:,.1f} s",
        *slowed,
        f"  lost in {_failures(answer['failures'])}: {answer['wasted_lost_s']:,.1f} s",
        *restarts,
        f"Refined (Daly): {answer['refined_interval_s']:,.1f} s of training between two saves.",
        f"Expected ETTR: {100 * answer['expected_ettr']:.2f} %, the queue aside.",
    ]


def _of_current(current: dict[str, float]) -> list[str]:
    share = f"{current['wasted_s']:,.1f} s ({current['wasted_percent']:.3f} %)"
    return [
        f"Now, every {current['interval_s']:,.1f} s: {share}, {current['saving_s']:,.1f} s more than needed.",
        f"Expected ETTR now: {100 * current['expected_ettr']:.2f} %.",
    ]


def _failures(count: float) -> str:
    """A number of failures, which may be a fraction.

    >>> _failures(28800.0), _failures(2.5), _failures(1.0)
    ('28,800 failures', '2.5 failures', '1 failure')
    """
    if count == 1:
        return "1 failure"
    return f"{count:,.0f} failures" if count >= 100 else f"{count:g} failures"  # noqa: PLR2004 - whole enough
