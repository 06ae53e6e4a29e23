"""How well are texts read that no row was written for? Tables of it, from the labelled texts of the tests.

PYTHONPATH=core python benchmarks/failures/leave_one_out.py [--missed]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from labelled_logs import Labelled, cases, worded
from left_out import Score, diagnosis, is_falsely_certain, is_right, left_out, score

from ett_core.failures import Diagnosis
from ett_core.failures.rule import ROOT
from ett_core.failures.rules import RULES

HEAD = """\
| texts | count | right | falsely certain | victims blamed | false alarms |
|---|---|---|---|---|---|"""


def line(name: str, one: Score) -> str:
    return (
        f"| {name} | {one.texts} | {one.right} ({100 * one.right / max(one.texts, 1):.0f} %)"
        f" | {one.falsely_certain} of {one.certain} | {one.blamed} of {one.victims}"
        f" | {one.alarms} of {one.harmless} |"
    )


def by_class(judged: Sequence[tuple[Labelled, Diagnosis]]) -> None:
    print("\n| class | texts | right | found instead |\n|---|---|---|---|")
    for name in sorted({each.failure_class for each, _ in judged}):
        own = [(each, found) for each, found in judged if each.failure_class == name]
        wrong = Counter(found.failure_class for each, found in own if not is_right(each, found))
        instead = ", ".join(f"{got} {count}" for got, count in wrong.most_common())
        print(f"| `{name}` | {len(own)} | {len(own) - wrong.total()} | {instead} |")


def missed(judged: Sequence[tuple[Labelled, Diagnosis]]) -> None:
    for each, found in judged:
        flags = [
            "WRONG" if not is_right(each, found) else "",
            "CERTAIN" if is_falsely_certain(each, found) else "",
            "BLAMED" if each.is_victim and found.role == ROOT else "",
        ]
        if any(flags):
            said = f"{found.failure_class} ({found.confidence}): {found.message}"
            print(f"\n## {each.name} {' '.join(flags)}: {said}\n{each.text.strip()[:1500]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missed", action="store_true", help="print what was not right")
    options = parser.parse_args()
    texts = (*cases(), *worded())
    split = len(cases())
    whole = [(each, diagnosis(each, RULES)) for each in texts]
    judged = list(zip(texts, left_out(texts), strict=True))
    print(HEAD)
    print(line("all rows: logs", score(whole[:split])))
    print(line("all rows: worded", score(whole[split:])))
    print(line("left out: logs", score(judged[:split])))
    print(line("left out: worded", score(judged[split:])))
    print(line("left out: all", score(judged)))
    by_class(judged)
    if options.missed:
        missed(judged)


if __name__ == "__main__":
    main()
