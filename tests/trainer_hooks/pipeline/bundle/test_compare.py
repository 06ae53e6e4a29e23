"""Why one bundle was of no use to another start."""

import pytest

from ett_trainer_hooks.pipeline.bundle.compare import FITS, Side, compare, side_of

FACTS = {"torch": "2.13", "cpu": "avx avx2", "gpu": ""}
KEYS = {"inductor": ["f1", "f2"], "aot_autograd": ["a1"]}


def side(what="one", **fields):
    return Side(**{"what": what, "facts": FACTS, "settings": {}, "artifacts": KEYS, "native": 3, **fields})


def reasons(one, two):
    return compare(one, two).reasons


def test_two_that_are_the_same_fit():
    found = compare(side(), side("two"))
    assert found.reasons == [FITS]
    assert (found.common, found.only_one, found.only_two) == ({"inductor": 2, "aot_autograd": 1}, {}, {})


def test_another_environment_is_named_first_and_keys_are_not_blamed_for_it():
    two = side("two", facts={**FACTS, "torch": "2.14"}, artifacts={"inductor": ["f9"]})
    assert reasons(side(), two) == ["two cannot use code of one: torch is 2.14, was 2.13."]


def test_a_setting_of_the_compiler_is_named():
    two = side("two", settings={"TORCHINDUCTOR_MAX_AUTOTUNE": "1"}, artifacts={"inductor": ["f9"]})
    [reason] = reasons(side(), two)
    assert "TORCHINDUCTOR_MAX_AUTOTUNE is 1, was not set" in reason


def test_the_name_of_the_job_is_blamed_for_nothing():
    """Jobs of other names use the same code: torch's name for sizes it has seen is in no key."""
    named = [side(name, settings={"TORCH_COMPILE_JOB_ID": f"ett:{name}"}) for name in ("one", "two")]
    assert reasons(*named) == [FITS]


def test_other_keys_alone_mean_that_the_program_changed():
    found = compare(side(), side("two", artifacts={"inductor": ["f1", "f9"], "aot_autograd": ["a9"]}))
    assert found.reasons[0].startswith("2 of 3 entries have other keys: the code of the model")
    assert (found.common, found.only_two) == ({"inductor": 1}, {"aot_autograd": 1, "inductor": 1})


@pytest.mark.parametrize(("gpu", "named"), [("", True), ("NVIDIA H200", False)])
def test_a_bundle_without_native_code_is_named_where_it_needs_some(gpu, named):
    facts = {**FACTS, "gpu": gpu}
    found = reasons(side(native=0, facts=facts), side("two", facts=facts))
    assert any("holds no native code" in reason for reason in found) == named


def test_an_environment_that_compiled_nothing_is_compared_by_its_facts(bundle):
    entry, _ = bundle()
    here = Side(what="this environment", facts=entry.facts)
    assert reasons(side_of(entry, "'dlrm'"), here) == [FITS]
    other = Side(what="this environment", facts={**entry.facts, "compiler": "g++ 13"})
    assert reasons(side_of(entry, "'dlrm'"), other) == [
        "this environment cannot use code of 'dlrm': C++ compiler is g++ 13, was g++ 12."
    ]
