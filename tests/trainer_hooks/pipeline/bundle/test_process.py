"""One process and its bundle: with the real compiler, on a new host, and with stores that fail."""

from __future__ import annotations

import json
import threading

import pytest

from ett_trainer_hooks.pipeline.bundle.process import ProcessBundle
from ett_trainer_hooks.pipeline.bundle.settings import BundleSettings
from ett_trainer_hooks.pipeline.bundle.store import BundleStore

FACTS = {"torch": "2.13", "cpu": "avx avx2", "compiler": "g++ 12"}

RANK = """
import json, os, sys
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.bundle.process import ProcessBundle
from ett_trainer_hooks.pipeline.bundle.settings import BundleSettings
from ett_trainer_hooks.pipeline.bundle.sharing import SharedCompiles

recorder = Recorder.from_env()
bundle = ProcessBundle(BundleSettings(address=sys.argv[1], name="model"), recorder)
shared = SharedCompiles(recorder, cache_dir=bundle.cache_dir, wait_s=200.0, absent_s=200.0, know=bundle.know)
bundle.fetch()
import torch
from torch.testing._internal.distributed.fake_pg import FakeStore
# torch keeps the sizes seen under the rank of the group
group = {"rank": int(os.environ["RANK"]), "world_size": 4}
torch.distributed.init_process_group("fake", store=FakeStore(), **group)
outcome = bundle.load().outcome
shared.begin(has_bundle=outcome == "hit")
first = torch.compile(lambda x: torch.relu(x) * 2)
total = first(torch.ones(4)).sum().item()
bundle.save()
second = torch.compile(lambda x: torch.sigmoid(x) * 3)
total += second(torch.ones(5)).sum().item()
shared.close()
bundle.close()
from torch._dynamo.utils import compilation_time_metrics, counters
print(json.dumps({
    "outcome": outcome,
    "native_s": sum(compilation_time_metrics.get("compile_file", [])),
    "misses": counters["inductor"]["fxgraph_cache_miss"],
    "total": total,
    "pid": os.getpid(),
}))
recorder.close()
"""


@pytest.fixture
def rank(start, tmp_path):
    """Starts a rank of a node with two, on a host of its own: with empty caches."""
    hosts = []

    def run(local_rank, attempt, rank=None):
        host = tmp_path / f"host{len(hosts)}"
        hosts.append(host)
        (host / "tmp").mkdir(parents=True)
        return start(
            RANK,
            str(tmp_path / "store"),
            TORCHINDUCTOR_CACHE_DIR=str(host / "caches"),
            TMPDIR=str(tmp_path),
            OMP_NUM_THREADS="1",
            LOCAL_RANK=str(local_rank),
            RANK=str(local_rank if rank is None else rank),
            LOCAL_WORLD_SIZE="2",
            ETT_ATTEMPT=str(attempt),
            TORCH_COMPILE_JOB_ID="ett:job",
        )

    return run


def ended(child):
    out, err = child.communicate(timeout=600)
    assert (child.returncode, b"ettwatch" in err) == (0, False), err.decode()
    return json.loads(out.splitlines()[-1])


@pytest.mark.service("torch")
@pytest.mark.service("compiler")
def test_one_rank_compiles_for_its_node_and_for_the_next_host(rank, tmp_path, events_in):
    """All graphs of both saves come back, no C++ is compiled, and the results are the same.

    Torch keeps the sizes seen under the rank: a rank with nothing else of its own keeps no bundle of its own.
    """
    leader, follower = rank(0, attempt=0), rank(1, attempt=0)
    compiled, waited = ended(leader), ended(follower)
    assert (compiled["outcome"], waited["outcome"]) == ("miss", "miss")
    assert compiled["native_s"] > 0
    assert (compiled["misses"], waited["misses"], waited["native_s"]) == (2, 0, 0)
    headers = tmp_path.rglob("*.h.gch")
    assert len(list(headers)) == 1
    store = BundleStore(str(tmp_path / "store"))
    [(path, entry)] = store.entries().items()
    assert path.endswith("/0.json")
    objects = store.objects()
    assert (entry.graphs, entry.rank, len(objects)) == (2, 0, 2)
    assert entry.artifacts["pgo"] == ["ett:job:0:"]
    again = ended(rank(1, attempt=1))
    assert (again["outcome"], again["misses"], again["native_s"]) == ("hit", 0, 0)
    elsewhere = ended(rank(0, attempt=2, rank=2))
    assert (elsewhere["outcome"], elsewhere["misses"]) == ("hit", 0)
    assert again["total"] == waited["total"] == compiled["total"]
    assert (store.entries(), store.objects()) == ({path: entry}, objects)
    [journal] = (tmp_path / "journal").glob(f"*-{again['pid']}.jsonl")
    told = [event for event in events_in(journal) if getattr(event, "cache", "") == "mega_cache"]
    assert (told[-1].hits, told[-1].bytes, told[-1].saved_s > 0) == (1, entry.size, True)


@pytest.fixture
def asked(bench, tmp_path):
    """How a process fares that asks a store, and what it tells of it."""

    def ask(address, **settings):
        told = bench()
        environ = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "caches"), "LOCAL_RANK": "1"}
        wanted = BundleSettings(**{"address": address, "name": "dlrm", **settings})
        process = ProcessBundle(wanted, told.recorder, environ=environ, facts=lambda: FACTS)
        process.fetch()
        use = process.use
        if use.outcome != "hit":
            process.load()
            [event] = told.of("cache")
            assert (event.misses, event.bypasses) == (use.outcome == "miss", use.outcome == "bypass")
        assert told.warnings == []
        return use

    return ask


def test_a_bundle_of_the_node_is_a_hit_for_a_rank_that_saved_none(asked, store, bundle):
    store.put(*bundle())
    assert asked(store.address).outcome == "hit"


def test_an_empty_a_foreign_and_a_damaged_store_are_misses(asked, store, bundle):
    assert asked(store.address).why == "there is none of the name 'dlrm' yet"
    entry = store.put(*bundle())
    [path] = store.objects()
    store._files().write(path, b"damaged")
    use = asked(store.address)
    assert (use.outcome, use.why) == (
        "miss",
        "its content has been changed or cut short: the hash is another",
    )
    store.remove(path)
    assert asked(store.address).why == "its content is gone"
    [path] = store.entries()
    store._files().write(path, b"damaged")
    assert asked(store.address).why.startswith("its entry is damaged")
    assert entry.facts == FACTS


def test_a_store_that_is_not_trusted_a_bad_key_and_a_silent_store_are_bypassed(asked, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    use = asked(str(tmp_path / "open"))
    assert (use.outcome, use.why.split(":")[0]) == ("bypass", f"others may write to {tmp_path / 'open'}")
    assert asked("s3://team/bundles").outcome == "bypass"
    use = asked(str(tmp_path / "store"), key_file=tmp_path / "none")
    assert (use.outcome, use.why) == (
        "bypass",
        f"the key in {tmp_path / 'none'} cannot be read: No such file or directory",
    )


def test_a_store_that_does_not_answer_is_bypassed_in_time(asked, tmp_path, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(BundleStore, "_files", lambda _: over.wait())
    use = asked(str(tmp_path / "store"), patience_s=0.05)
    over.set()
    assert (use.outcome, use.why) == ("bypass", f"{tmp_path / 'store'}: GaveUpError: no answer within 0.05 s")
