"""The declared form of a jagged batch, made up and compared with real ones."""

import pytest

from ett_trainer_hooks.pipeline.batch_spec import Dense, Jagged, make, mismatch

torch = pytest.importorskip("torch")
torchrec = pytest.importorskip("torchrec")

pytestmark = pytest.mark.service("torch")

KEYS = ("user", "item")


def real(keys=KEYS, samples=4, ids=3, **changed):
    many = len(keys) * samples
    parts = {
        "values": torch.zeros(many * ids, dtype=torch.int64),
        "lengths": torch.full((many,), ids, dtype=torch.int32),
    }
    return {"ids": torchrec.KeyedJaggedTensor(keys=list(keys), **parts | changed)}


def test_what_is_made_up_is_as_declared():
    """A batch made from a declaration passes its own comparison."""
    spec = {"ids": Jagged(KEYS, 4, ids=2, weighted=True), "labels": Dense((4,), "int64")}
    made = make(spec)
    assert mismatch(spec, made) == ""
    assert made["ids"].values().shape == (16,)


def test_real_ones_may_hold_any_number_of_ids():
    """Compiled parts never see them."""
    assert mismatch({"ids": Jagged(KEYS, 4)}, real(ids=7)) == ""


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (real(keys=("user",)), "ids lacks the keys item"),
        (real(keys=(*KEYS, "page")), "ids has more keys than declared, page among them"),
        (real(keys=KEYS[::-1]), "ids has its keys in another order than declared"),
        (real(samples=5), "ids has 5 samples, declared 4"),
        (real(values=torch.zeros(24, dtype=torch.int32)), "ids has ids of int32, declared int64"),
        (real(lengths=torch.full((8,), 3)), "ids has lengths of int64, declared int32"),
        (real(weights=torch.ones(24)), "ids has weights, declared without"),
        ({"ids": 3}, "ids is a int, declared as a jagged tensor"),
        ({}, "ids is not there"),
    ],
)
def test_each_difference_is_told(batch, words):
    """In words that name the field."""
    assert mismatch({"ids": Jagged(KEYS, 4)}, batch) == words
