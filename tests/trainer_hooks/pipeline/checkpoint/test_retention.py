"""What stays: the last, every n-th, the best."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_trainer_hooks.pipeline.checkpoint.manifest import Manifest
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention, retired


def committed(*facts):
    """Checkpoints in the order of their commits: steps, or steps with a loss."""
    pairs = [fact if isinstance(fact, tuple) else (fact, None) for fact in facts]
    return [
        Manifest(
            step=step,
            sequence=sequence,
            commit=f"c{sequence}",
            world_size=1,
            made_at=float(sequence),
            metrics={} if loss is None else {"loss": loss},
            files={},
        )
        for sequence, (step, loss) in enumerate(pairs, 1)
    ]


def gone(facts, **rule):
    return [manifest.step for manifest in retired(committed(*facts), Retention(**rule))]


def test_the_last_stay():
    assert gone([100, 200, 300, 400], last=3) == [100]
    assert gone([100], last=3) == []


def test_the_last_are_those_committed_last_though_training_went_back():
    assert gone([100, 200, 300, 150], last=2) == [100, 200]


def test_every_nth_stays():
    assert gone(range(100, 700, 100), last=1, every=300) == [100, 200, 400, 500]


def test_the_best_stay():
    facts = [(100, 0.3), (200, 0.1), (300, 0.2), (400, 0.4)]
    assert gone(facts, last=1, best=1, metric="loss") == [100, 300]
    assert gone(facts, last=1, best=2, metric="loss", highest=True) == [200, 300]


def test_of_equal_ones_the_newest_and_no_number_is_never_best():
    facts = [(100, 0.1), (200, 0.1), (300, float("nan")), (400, None), (500, 0.9)]
    assert gone(facts, last=1, best=1, metric="loss") == [100, 300, 400]


@pytest.mark.parametrize(
    "rule", [{"last": 0}, {"every": -1}, {"best": -1, "metric": "m"}, {"best": 1}, {"metric": "m"}]
)
def test_what_cannot_be_meant_is_refused(rule):
    with pytest.raises(ValueError, match="checkpoint"):
        Retention(**rule)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.none() | st.floats()), max_size=12),
    st.integers(1, 4),
    st.integers(0, 7),
    st.integers(0, 3),
)
def test_the_newest_always_stays_and_a_second_look_finds_nothing(facts, last, every, best):
    rule = Retention(last=last, every=every, best=best, metric="loss" if best else "")
    all_of_them = committed(*facts)
    leaving = retired(all_of_them, rule)
    staying = [manifest for manifest in all_of_them if manifest not in leaving]
    assert all_of_them[-last:] == staying[-last:] or len(all_of_them) < last
    assert retired(staying, rule) == []
