"""The stored sharding plan: used again where nothing has changed, made anew with a reason where it has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrec")

import torch.distributed as dist  # noqa: E402
from gloo_ranks import run_ranks  # noqa: E402
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig  # noqa: E402
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology  # noqa: E402
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation  # noqa: E402
from torchrec.distributed.types import CacheParams, KeyValueParams, ShardingType  # noqa: E402
from torchrec.modules.embedding_configs import DataType  # noqa: E402

from ett_trainer_hooks.pipeline import plan_store  # noqa: E402
from ett_trainer_hooks.pipeline.differences import difference  # noqa: E402
from ett_trainer_hooks.pipeline.plan_context import MEMORY_TOLERANCE, context_of, outline, plain  # noqa: E402
from ett_trainer_hooks.pipeline.plan_format import restored, stored  # noqa: E402
from ett_trainer_hooks.pipeline.plan_store import PlanStore, PlanStoreError, stored_plan  # noqa: E402

pytestmark = pytest.mark.service("torch")

PROGRAM = Path(__file__).with_name("programs") / "plans.py"
KINDS = [kind.value for kind in ShardingType]


class Job:
    """A model and its planner, as they are made at every start; arguments are what differs."""

    def __init__(self, *, rows=1000, ranks=2, device="cpu", ddr=2**34, rate=0.1, **constraint):
        names = ("a", "b")
        tables = [
            EmbeddingBagConfig(name=name, embedding_dim=8, num_embeddings=rows, feature_names=[f"f_{name}"])
            for name in names
        ]
        self.module = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
        self.sharders = [EmbeddingBagCollectionSharder(fused_params={"learning_rate": rate})]
        self.planner = EmbeddingShardingPlanner(
            topology=Topology(world_size=ranks, local_world_size=2, compute_device=device, ddr_cap=ddr),
            storage_reservation=FixedPercentageStorageReservation(0.1),
            constraints={name: ParameterConstraints(**constraint) for name in names} if constraint else None,
        )

    def context(self):
        return context_of(self.planner, self.module, self.sharders)

    def plan(self):
        return self.planner.plan(self.module, self.sharders)


@pytest.fixture(scope="module")
def planned():
    """A plan and the context that it was made for."""
    job = Job()
    context = job.context()
    return context, job.plan()


def test_a_plan_comes_back_for_the_same_start(tmp_path, planned):
    context, plan = planned
    PlanStore(str(tmp_path)).save(context, plan)
    found, _ = PlanStore(str(tmp_path)).load(Job().context())
    assert found == plan
    assert [path.name for path in tmp_path.iterdir()] == [plan_store.path_of(context)]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"rows": 2000}, "tables..parameters.a.shape[0] was 1000, is 2000"),
        ({"ranks": 4}, "topology.world_size was 2, is 4"),
        ({"rate": 0.2}, "fused_params.learning_rate was 0.1, is 0.2"),
        ({"sharding_types": ["row_wise"]}, "constraints was None, is {"),
    ],
)
def test_what_was_made_for_another_start_is_named(tmp_path, planned, changed, reason):
    """The reader learns what is not as it was, with both values."""
    PlanStore(str(tmp_path)).save(*planned)
    with pytest.raises(PlanStoreError) as error:
        PlanStore(str(tmp_path)).load(Job(**changed).context())
    assert reason in str(error.value)


def test_memory_may_differ_a_little_and_no_more(tmp_path, planned):
    """Two hosts of one kind seldom have quite the same."""
    PlanStore(str(tmp_path)).save(*planned)
    for part, fits in ((MEMORY_TOLERANCE / 2, True), (MEMORY_TOLERANCE * 2, False)):
        context = Job(ddr=int(2**34 * (1 + part))).context()
        if fits:
            assert PlanStore(str(tmp_path)).load(context)[0] == planned[1]
        else:
            with pytest.raises(PlanStoreError, match="ddr of rank 0 was 17179869184 bytes, is 1"):
                PlanStore(str(tmp_path)).load(context)


def test_a_context_is_plain_data_without_addresses():
    """What cannot be told comes as a name; the state of a part counts, its work does not."""

    class Part:
        def __init__(self):
            self.share, self.kind, self.work = 0.5, DataType.FP16, object()

    assert plain({"a": (1, torch.float32), "b": {2, 1}, "c": print, "d": None}) == {
        "a": [1, "torch.float32"],
        "b": ["1", "2"],
        "c": "builtins.print",
        "d": None,
    }
    assert plain(ParameterConstraints(output_dtype=DataType.FP16))["output_dtype"] == "FP16"
    told = outline([Part()])[0]
    assert told.pop("class").endswith("Part")
    assert told == {"share": 0.5, "kind": "FP16"}


def test_the_first_difference_is_named_by_its_place():
    then = {"a": [{"b": 1}, 2], "c": 3, "d": 4}
    for now, words in (
        (then, ""),
        ({**then, "c": 5}, "c was 3, is 5"),
        ({**then, "a": [{"b": 7}, 2]}, "a[0].b was 1, is 7"),
        ({**then, "a": [1]}, "a was [{'b': 1}, 2], is [1]"),
        ({**then, "e": 1}, "e is new"),
        ({"a": then["a"], "c": 3}, "d is gone"),
    ):
        assert difference(then, now) == words


def spoil(path, how):
    data = path.read_bytes()
    file = json.loads(data)
    path.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "flipped": data.replace(b'"ranks":[', b'"ranks":[1,', 1),
            "empty": b"",
            "no JSON": b"\x80\x04pickle",
            "newer": json.dumps({**file, "format": 99}).encode(),
        }[how]
    )


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("cut", "is damaged"),
        ("flipped", "is damaged.* does not have the hash that it names"),
        ("empty", "is damaged"),
        ("no JSON", "is damaged"),
        ("newer", "has format 99, not 1"),
    ],
)
def test_a_damaged_file_is_no_plan(tmp_path, planned, how, reason):
    """Whatever lies there, it is a reason and no other error."""
    PlanStore(str(tmp_path)).save(*planned)
    spoil(next(tmp_path.iterdir()), how)
    with pytest.raises(PlanStoreError, match=reason):
        PlanStore(str(tmp_path)).load(Job().context())


def test_a_kernel_that_is_unknown_here_makes_no_plan(planned):
    """It was written by a torchrec that knows more."""
    _, plan = planned
    tables = stored(plan)
    unknown = {
        path: {name: type(each)("row_wise", "a_kernel_of_tomorrow") for name, each in module.items()}
        for path, module in tables.items()
    }
    with pytest.raises(ValueError, match="a_kernel_of_tomorrow"):
        restored(unknown)


@pytest.mark.parametrize("kind", KINDS)
def test_plans_of_each_kind_come_back_as_they_were(kind):
    """With all that the format holds: cached tables, other types, checks of bounds."""
    job = Job(ranks=4, device="cuda", sharding_types=[kind], min_partition=4, output_dtype=DataType.FP16)
    plan = job.plan()
    for sharding in plan.plan[""].values():
        sharding.cache_params = CacheParams(load_factor=0.2, precision=DataType.FP16)
    assert {sharding.sharding_type for sharding in plan.plan[""].values()} == {kind}
    assert restored(stored(plan)) == plan


def test_what_has_no_place_in_the_format_is_refused_by_name():
    plan = Job().plan()
    plan.plan[""]["b"].key_value_params = KeyValueParams(l2_cache_size=1)
    with pytest.raises(ValueError, match="table b has parameters of a key-value store"):
        stored(plan)


def test_old_plans_go(tmp_path, planned, monkeypatch):
    """The oldest of those of other starts; what else lies there stays."""
    monkeypatch.setattr(plan_store, "KEPT", 2)
    (tmp_path / "notes.txt").write_text("mine")
    rates = (0.1, 0.2, 0.3)
    for now, rate in zip((3.0, 1.0, 2.0), rates, strict=True):
        PlanStore(str(tmp_path), now=lambda now=now: now).save(Job(rate=rate).context(), planned[1])
    assert (tmp_path / "notes.txt").exists()
    kept = [(tmp_path / plan_store.path_of(Job(rate=rate).context())).exists() for rate in rates]
    assert kept == [True, False, True]


def test_a_plan_may_lie_at_a_url(planned):
    """Whatever fsspec reaches; here its memory."""
    pytest.importorskip("fsspec")
    store = PlanStore("memory://plans-of-a-test")
    with pytest.raises(PlanStoreError, match="there is none in memory://plans-of-a-test yet"):
        store.load(planned[0])
    store.save(*planned)
    assert store.load(Job().context())[0] == planned[1]


@pytest.mark.parametrize("address", ["a file", "nobody-knows://this"])
def test_a_place_that_fails_says_so(tmp_path, monkeypatch, planned, address):
    """The error names the place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").touch()
    for work in (lambda store: store.load(planned[0]), lambda store: store.save(*planned)):
        with pytest.raises(PlanStoreError, match=address):
            work(PlanStore(address))


@pytest.fixture
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("address", ["/proc/nowhere", "nobody-knows://this"])
def test_a_start_goes_on_without_a_place_that_fails(bench, planned, address):
    """The plan is the planner's; one decision tells why it was made, one why it is not kept."""
    here, job = bench(), Job()
    store = PlanStore(address)
    plan = stored_plan(job.planner, job.module, job.sharders, store=store, recorder=here.recorder)
    assert plan == planned[1]
    made, left = here.of("decision")
    assert (made.what, left.what) == (plan_store.MADE, plan_store.NOT_STORED)
    assert address in made.why
    assert address in left.why


@pytest.mark.usefixtures("alone")
def test_a_planner_that_does_not_tell_its_inputs_plans_as_ever(bench, tmp_path, planned):
    """Nothing is kept that nobody could say what it was made for."""

    class Closed:
        def collective_plan(self, *_):
            return planned[1]

    here, job = bench(), Job()
    store = PlanStore(str(tmp_path))
    assert stored_plan(Closed(), job.module, job.sharders, store=store, recorder=here.recorder) == planned[1]
    assert "does not tell what it plans for" in here.of("decision")[0].why
    assert not any(tmp_path.glob("plan-*"))


def test_two_ranks_use_a_plan_only_if_both_hold_it(tmp_path):
    """One all-reduce and no broadcast where both do; each rank tells why where they do not."""
    shared = tmp_path / "shared"
    ranks = run_ranks(PROGRAM, tmp_path / "here", str(shared))
    for name in ranks[0]:
        assert ranks[0][name]["plan"] == ranks[1][name]["plan"], name
    told = {name: [rank[name]["told"] for rank in ranks] for name in ranks[0]}
    whats = {name: [each[0][0] for each in both] for name, both in told.items()}
    used, made = [plan_store.USED] * 2, [plan_store.MADE] * 2
    assert whats == {
        "first": made,
        "again": used,
        "other tables": made,
        "apart": made,
        "a host of its own": made,
        "both hosts again": used,
        "damaged on one": made,
        "mended": used,
    }
    for name, (what, _) in whats.items():
        broadcasts = 0 if what == plan_store.USED else 1
        for rank in ranks:
            assert rank[name]["calls"] == {"all_reduce": 1, "broadcast_object_list": broadcasts}, name
    for name, rank, reason in (
        ("first", 0, "there is none in"),
        ("other tables", 1, "shape[0] was 1000, is 2000"),
        ("apart", 0, "another rank has a different one, or none"),
        ("apart", 1, "there is none in"),
        ("damaged on one", 0, "another rank has a different one, or none"),
        ("damaged on one", 1, "is damaged"),
    ):
        assert reason in told[name][rank][0][1], name
    assert ranks[0]["again"]["plan"] == ranks[0]["first"]["plan"]
    assert all(path.match("plan-*.json") for path in shared.glob("*/*"))
