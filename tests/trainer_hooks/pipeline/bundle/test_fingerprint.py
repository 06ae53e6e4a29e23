"""Facts of an environment, and what differs between two."""

import subprocess
import sys

import pytest

from ett_trainer_hooks.pipeline.bundle.fingerprint import TITLES, differences, digest, environment

CPUINFO = "processor\t: 0\nflags\t\t: sse avx2 avx\n\nprocessor\t: 1\nflags\t\t: sse avx2 avx\n"


def test_every_fact_has_a_title_and_a_value_in_words(tmp_path):
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    gpu = tmp_path / "driver/nvidia/gpus/0000:01:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   10\n")
    (tmp_path / "driver/nvidia/version").write_text("NVRM version: 570.1\nGCC version: 12\n")
    asked = []
    facts = environment(tmp_path, {"CXX": "clang++"}, lambda command: asked.append(command) or "clang 19")
    assert facts.keys() == TITLES.keys()
    assert facts["cpu"] == "avx avx2 sse"
    assert facts["gpu"] == "NVIDIA H200"
    assert facts["driver"] == "NVRM version: 570.1"
    assert facts["compiler"] == "clang 19"
    assert asked == [["clang++", "--version"]]
    assert facts["python"].startswith("cpython-3")


def test_a_machine_without_compiler_or_processor_facts_still_has_facts(tmp_path):
    facts = environment(tmp_path, {"CXX": str(tmp_path / "no-compiler")})
    assert (facts["cpu"], facts["gpu"], facts["compiler"]) == ("", "", "")


def test_every_fact_counts_and_the_order_does_not():
    facts = dict.fromkeys(TITLES, "x")
    assert digest(dict(reversed(facts.items()))) == digest(facts)
    assert len({digest({**facts, key: "y"}) for key in TITLES}) == len(TITLES)


@pytest.mark.parametrize("key", TITLES)
def test_a_difference_names_the_fact(key):
    one, two = dict.fromkeys(TITLES, "x"), {**dict.fromkeys(TITLES, "x"), key: "y"}
    [difference] = differences(one, two)
    assert difference.startswith(TITLES[key])
    assert differences(one, one) == []


def test_a_fact_that_is_missing_is_not_known():
    assert differences({"driver": "570"}, {}) == ["driver of the GPUs is not known, was 570"]


def test_facts_are_the_same_in_another_process_and_need_no_torch():
    code = (
        "import sys; from ett_trainer_hooks.pipeline.bundle.fingerprint import digest, environment;"
        "print(digest(environment())); assert 'torch' not in sys.modules"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == digest(environment())
