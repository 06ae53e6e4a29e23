"""The synthetic data: deterministic, of the right shape, with a signal that can be learnt."""

import numpy as np
import pytest

from ett_trainer_hooks.reference.criteo import planted_signal, samples

SIGNAL = planted_signal(seed=7, rows=500)


def test_a_batch_follows_from_seed_rank_and_step_alone():
    """The batch of a step is the same whatever was drawn before: a resumed run sees the same data."""
    uninterrupted = [samples(SIGNAL, 7, 1, step, 32) for step in range(6)]
    resumed = samples(planted_signal(seed=7, rows=500), 7, 1, 5, 32)
    np.testing.assert_array_equal(resumed.dense, uninterrupted[5].dense)
    np.testing.assert_array_equal(resumed.ids, uninterrupted[5].ids)
    np.testing.assert_array_equal(resumed.clicked, uninterrupted[5].clicked)


@pytest.mark.parametrize("other", [(8, 1, 5), (7, 0, 5), (7, 1, 4)])
def test_another_seed_rank_or_step_gives_other_data(other):
    """No two steps and no two ranks share a batch."""
    assert (samples(SIGNAL, 7, 1, 5, 32).ids != samples(SIGNAL, *other, 32).ids).any()


def test_ids_stay_within_the_tables_and_follow_a_power_law():
    """Every id is a row; the most frequent tenth of the rows has more than half of the draws."""
    ids = samples(SIGNAL, 7, 0, 0, 2000).ids
    assert ids.min() >= 0
    assert ids.max() < 500
    assert (ids < 50).mean() > 0.5


def test_clicks_follow_the_planted_signal():
    """Samples with a high hidden logit are clicked far more often than those with a low one."""
    drawn = samples(SIGNAL, 7, 0, 0, 4000)
    logit = drawn.dense @ SIGNAL.dense + np.take_along_axis(SIGNAL.ids, drawn.ids, axis=1).sum(axis=0)
    order = np.argsort(logit)
    assert drawn.clicked[order[-1000:]].mean() - drawn.clicked[order[:1000]].mean() > 0.4
