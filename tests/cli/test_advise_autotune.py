"""Advice from a cache directory of the form in which Inductor keeps one; one test has torch write to it."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ett_cli.autotune_caches import list_hash, parse_kernel, read_cache
from ett_cli.autotune_traces import CHOSEN as CHOSEN_NAME
from ett_cli.autotune_traces import MEASURED, parse_choices, parse_tunings, read_choices
from ett_cli.main import main
from ett_core.choosing import Choice
from ett_core.events import Cache, TunedKernel, encode
from ett_core.tuning import Tuning

CONFIGS = [{"BLOCK": block, "num_warps": warps, "num_stages": 2} for block in (128, 256) for warps in (4, 8)]
OWN = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics

@triton_heuristics.user_autotune(
    configs={configs!r},
    inductor_meta={{'grid_type': 'FixedGrid', 'kernel_name': '{name}_0', 'backend_hash': 'ab'}},
    triton_meta={{'signature': {{'x': '*fp32'}}, 'device': DeviceProperties(type='cuda', index=0)}},
    filename=__file__,
    custom_kernel=True,
)
@triton.jit
def {name}(x, BLOCK: tl.constexpr):
    pass
"""
MADE = """
import triton
from torch._inductor.runtime import triton_heuristics

@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32'}},
    inductor_meta={'kernel_name': 'triton_poi_fused_add_0'},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, xnumel, XBLOCK: tl.constexpr):
    pass
"""
CALLING = """
# Original path: /job/kernels.py:12
gather_0 = async_compile.triton('gather', '''
def gather(): pass
''', device_str='cuda')
"""


def kept(winner, *, seconds, configs_hash):
    """What torch keeps of a winner, by name and value."""
    return {
        **winner,
        "configs_hash": configs_hash,
        "found_by_coordesc": False,
        "time_taken_ms": int(seconds * 1000),
        "triton_cache_hash": None,
    }


def keep(code_file, winner, *, seconds, configs_hash):
    best = kept(winner, seconds=seconds, configs_hash=configs_hash)
    code_file.with_suffix(".best_config").write_text(json.dumps(best))


def code(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


@pytest.fixture
def cache(tmp_path):
    """Three tunings of one kernel of the program beside another, and one that Inductor wrote."""
    code(tmp_path / "zz", "calls", CALLING)
    for number, winner in enumerate((0, 2, 2)):
        folder = tmp_path / f"a{number}"
        path = code(folder, f"ga{number}", OWN.format(configs=CONFIGS, name="gather"))
        code(folder, "other", OWN.format(configs=CONFIGS[:2], name="other"))
        keep(path, CONFIGS[winner], seconds=2.0, configs_hash=list_hash(CONFIGS))
    path = code(tmp_path / "b0", "made", MADE)
    made = {"XBLOCK": 256, "num_warps": 4, "num_stages": 1}
    keep(path, made, seconds=0.5, configs_hash="0" * 64)
    return tmp_path


@pytest.mark.service("torch")
def test_torch_keeps_a_winner_in_this_form(tmp_path):
    """With the hash of its list, beside the code, whatever the name of the file."""
    runtime = "torch._inductor.runtime."
    caches = importlib.import_module(f"{runtime}autotune_cache")
    hash_configs = importlib.import_module(f"{runtime}triton_heuristics").hash_configs
    configs = [
        SimpleNamespace(kwargs={"BLOCK": each["BLOCK"]}, num_warps=each["num_warps"], num_stages=2)
        for each in CONFIGS
    ]
    path = code(tmp_path / "a0", "ga0", OWN.format(configs=CONFIGS, name="gather"))
    cache = caches.AutotuneCache.create({"autotune_local_cache": True}, str(path), hash_configs(configs))
    cache.save(configs[2], 2_000_000_000)
    (written,) = tmp_path.rglob("*.best_config")
    assert json.loads(written.read_bytes()) == kept(CONFIGS[2], seconds=2, configs_hash=list_hash(CONFIGS))
    (tuning,) = read_cache(tmp_path)
    assert (tuning.kernel, dict(tuning.config)) == ("gather", CONFIGS[2])


def test_what_was_kept_is_found_with_its_kernel_and_list(cache):
    tunings = read_cache(cache)
    assert [(tuning.kernel, tuning.tuned_s) for tuning in tunings] == [("gather", 2.0)] * 3 + [
        ("triton_poi_fused_add_0", 0.5)
    ]
    assert len(tunings[0].candidates) == 4
    assert tunings[0].config in tunings[0].candidates
    assert tunings[0].origin == "/job/kernels.py:12"
    assert tunings[3].candidates is None


def test_words_hold_the_list_to_paste(cache, capsys):
    assert main(["advise", "autotune", str(cache)]) == 0
    out = capsys.readouterr().out
    assert "4 tunings of 2 kernels took 6.5 s; about 3.0 s less" in out
    assert "gather (/job/kernels.py:12): 6.0 s, tuned 3 times\n  2 of its 4 configurations won:" in out
    pasted = "    configs=[\n        triton.Config({'BLOCK': 256}, num_stages=2, num_warps=4),\n"
    assert pasted in out
    assert "its list is the compiler's" in out


def test_an_object_for_programs(cache, capsys):
    assert main(["advise", "autotune", str(cache), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["tunings"], answer["tuned_s"], answer["expected_s"]) == (4, 6.5, 3.5)
    assert answer["kernels"][0]["reduced"] == [CONFIGS[2], CONFIGS[0]]


def test_a_choice_whose_kernel_is_not_clear_has_no_name(tmp_path):
    for name in ("one", "two"):
        path = code(tmp_path / "c0", name, MADE.replace("add_0", name))
    keep(path, {"XBLOCK": 64, "num_warps": 1, "num_stages": 1}, seconds=1, configs_hash="0")
    (tuning,) = read_cache(tmp_path)
    assert tuning.kernel == ""


def test_a_cache_without_tuning_says_so(tmp_path, capsys):
    (tmp_path / "broken.best_config").write_text("{")
    assert main(["advise", "autotune", str(tmp_path)]) == 1
    assert "no kernel was tuned in there" in capsys.readouterr().err
    assert main(["advise", "autotune", str(tmp_path / "none")]) == 1
    assert "no such file or directory" in capsys.readouterr().err


def journals(tmp_path, job="j", attempts=((0, 1), (2, 3))):
    """Journals of two processes in each attempt, with what they had found and tuned so far, twice each."""
    place = tmp_path / "journals"
    place.mkdir(exist_ok=True)
    for attempt, (found, tuned) in enumerate(attempts):
        for rank in (0, 1):
            head = {"job_id": job, "writer": f"{job}-{attempt}-{rank}", "attempt": attempt, "rank": rank}
            head |= {"node": "n", "time": 1.0 + attempt}
            totals = [(found, tuned), (10 * found, 10 * tuned)]
            events = [
                Cache(**head, seq=n, cache="autotune", hits=h, misses=m) for n, (h, m) in enumerate(totals)
            ]
            events.append(Cache(**head, seq=5, cache="fx_graph", hits=7, misses=7))
            lines = b"".join(encode(event) + b"\n" for event in events)
            (place / f"{head['writer']}-1.jsonl").write_bytes(lines)
    return place


HINT = (
    "A start that tunes had no cache of the one before, or other code: keep TORCHINDUCTOR_CACHE_DIR, "
    "or a bundle (docs/bundles.md)."
)


def test_journals_tell_how_much_each_attempt_tuned(tmp_path, capsys):
    """Of each process its latest totals count."""
    assert main(["advise", "autotune", str(journals(tmp_path))]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "The job tuned kernels 80 times, and found what had won before 40 times:",
        "  attempt 0, 2 processes: 20 tuned, 0 found",
        "  attempt 1, 2 processes: 60 tuned, 40 found",
        HINT,
        "Which kernels, and what won, is in the cache directory (TORCHINDUCTOR_CACHE_DIR): name it too.",
    ]


def test_journals_of_a_job_that_found_everything_ask_for_nothing(tmp_path, capsys):
    assert main(["advise", "autotune", str(journals(tmp_path, attempts=[(3, 0)]))]) == 0
    assert capsys.readouterr().out == "The job tuned nothing: it found what had won before 60 times.\n"


def test_journals_beside_a_cache_tell_of_attempts(tmp_path, cache, capsys):
    assert main(["advise", "autotune", str(cache), str(journals(tmp_path)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["kernels"]) > 0
    assert told["attempts"][1] == {"attempt": 1, "processes": 2, "found": 40, "tuned": 60}


@pytest.fixture
def recorded(tmp_path):
    """A journal of two processes that each tuned two kernels."""
    lines = []
    for rank, winner in enumerate((0, 2)):
        head = {"job_id": "j", "writer": str(rank), "attempt": 0, "rank": rank, "node": "n"}
        own = TunedKernel(kernel="gather", tuned_s=2.0, config=CONFIGS[winner], candidates=tuple(CONFIGS))
        made = TunedKernel(kernel="triton_mm", tuned_s=0.5, config={"XBLOCK": 64, "num_warps": 4})
        lines += [
            encode(Cache(**head, seq=seq, time=1.0 + seq, cache="autotune", misses=seq + 1, tuned=tuned))
            for seq, tuned in enumerate((own, made))
        ]
    place = tmp_path / "recorded.jsonl"
    place.write_bytes(b"\n".join(lines) + b"\n")
    return place


def test_journals_tell_which_kernels_and_what_won(recorded, capsys):
    """Seconds are those of all processes; nobody is sent to a cache directory."""
    assert main(["advise", "autotune", str(recorded)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "4 tunings of 2 kernels took 5.0 s; about 2.0 s less with the lists below, which hold what won.",
        "",
        "gather: 4.0 s, tuned 2 times",
        "  2 of its 4 configurations won (other sizes may want others: few were seen):",
        "    configs=[",
        "        triton.Config({'BLOCK': 128}, num_stages=2, num_warps=4),",
        "        triton.Config({'BLOCK': 256}, num_stages=2, num_warps=4),",
        "    ]",
        "",
        "triton_mm: 1.0 s, tuned 2 times",
        "  its list is the compiler's; keep the cache, or a bundle, so that it is tuned once",
        "  won 2 times  XBLOCK=64, num_warps=4",
        "",
        "The job tuned kernels 4 times, and found what had won before 0 times:",
        "  attempt 0, 2 processes: 4 tuned, 0 found",
    ]


def test_of_a_kernel_that_a_cache_and_a_journal_tell_of_the_cache_counts(recorded, cache, capsys):
    """It knows where the kernel stands; what only the journal tells of stands beside it."""
    assert main(["advise", "autotune", str(cache), str(recorded), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tunings = {kernel["kernel"]: (kernel["tunings"], kernel["origin"]) for kernel in told["kernels"]}
    assert tunings == {
        "gather": (3, "/job/kernels.py:12"),
        "triton_mm": (2, None),
        "triton_poi_fused_add_0": (1, None),
    }


def test_of_journals_of_several_jobs_one_is_chosen(tmp_path, capsys):
    journals(tmp_path)
    place = str(journals(tmp_path, job="k", attempts=[(0, 1)]))
    assert main(["advise", "autotune", place]) == 2
    assert "2 jobs in there: choose one with --job" in capsys.readouterr().err
    assert main(["advise", "autotune", place, "--job", "k", "--json"]) == 0
    assert [each["tuned"] for each in json.loads(capsys.readouterr().out)["attempts"]] == [20]
    assert main(["advise", "autotune", place, "--job", "nobody"]) == 1
    assert "nothing of the job 'nobody' in there" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["def f(:", "x = 1", "@other.thing\ndef f(): pass", "\0"])
def test_code_that_defines_no_kernel_gives_none(text):
    assert parse_kernel(text) is None


TRACED = """
import torch
from torch._dynamo.utils import dynamo_timed

where = {"compile_id": torch._guards.CompileId(frame_id=0, frame_compile_id=0), "is_backward": False}
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
for kernel in ("triton_poi_fused_add_0", "gather_0", "gather_0", None):
    for event in ("benchmark_all_configs", "coordinate_descent_tuning")[: 2 if kernel == "gather_0" else 1]:
        with dynamo_timed(f"CachingAutotuner.{event}", metadata={"kernel_name": kernel}, **where):
            pass
"""
CHOSEN = """
import torch
from torch._dynamo.utils import dynamo_timed
from torch._inductor.select_algorithm import _log_autotune_choices_stats

class Caller:
    def __init__(self, name):
        self.name, self.description = name, "BLOCK_M=16"

where = {"compile_id": torch._guards.CompileId(frame_id=0, frame_compile_id=0), "is_backward": False}
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
for operation, names in (
    ("mm", ["mm", "triton_mm_3", "triton_mm_4"]),
    ("mm", ["triton_mm_7", "mm"]),
    ("bmm", ["bmm", "triton_bmm_9"]),
):
    with dynamo_timed(f"{operation}_template_precompiling", **where):
        pass
    with dynamo_timed(f"{operation}_template_autotuning", metadata={"autotune_shape": "64x32"}, **where):
        timings = {Caller(name): float(place) for place, name in enumerate(names, start=1)}
        _log_autotune_choices_stats(f"{operation}_template_autotuning", timings)
"""


def traced(program, folder):
    environ = {**os.environ, "TORCH_TRACE": str(folder), "OMP_NUM_THREADS": "1"}
    made = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    return folder


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace that torch wrote, in the way in which its autotuner has it write."""
    return traced(TRACED, tmp_path_factory.mktemp("trace"))


@pytest.mark.service("torch")
def test_a_trace_of_torch_tells_what_was_measured_and_for_how_long(trace, capsys):
    """A search from the best of the list on is part of the tuning before it."""
    assert main(["advise", "autotune", str(trace), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tunings = {kernel["kernel"]: kernel["tunings"] for kernel in told["kernels"]}
    assert tunings == {"triton_poi_fused_add_0": 1, "gather_0": 2, None: 1}
    assert all(kernel["tuned_s"] > 0 for kernel in told["kernels"])
    assert not any(kernel["winners"] for kernel in told["kernels"])
    assert main(["advise", "autotune", str(trace)]) == 0
    assert "what won is in the cache directory" in capsys.readouterr().out


@pytest.mark.service("torch")
def test_of_a_kernel_that_both_tell_of_the_cache_counts(trace, cache, capsys):
    """Torch numbers the uses of a kernel of the program's own."""
    assert main(["advise", "autotune", str(cache), str(trace), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tunings = {kernel["kernel"]: kernel["tunings"] for kernel in told["kernels"]}
    assert tunings == {"gather": 3, "triton_poi_fused_add_0": 1, None: 1}


def test_events_without_an_end_and_other_lines_are_passed_over():
    head = b'V1130 07:41:44.1 1 torch/a.py:1] {"chromium_event": {}, "has_payload": "8a"}\n'
    event = {"name": MEASURED, "ts": 1e6, "args": {"kernel_name": "k"}, "ph": "B"}
    begin, end = json.dumps(event).encode(), json.dumps({**event, "ts": 3e6, "ph": "E"}).encode()
    lines = [head, b"\t" + begin + b"\n", b"noise\n", b"\t" + end, head, b'\t{"name": "CachingAutotuner.\n']
    assert parse_tunings(lines) == []
    assert parse_tunings([*lines, head, b"\t" + end]) == [Tuning(kernel="k", config=None, tuned_s=2.0)]


@pytest.mark.service("torch")
def test_a_trace_of_torch_tells_what_choosing_among_implementations_cost_and_what_won(tmp_path, capsys):
    traced(CHOSEN, tmp_path)
    assert main(["advise", "autotune", str(tmp_path), "--json"]) == 0
    told = {each.pop("operation"): each for each in json.loads(capsys.readouterr().out)["operations"]}
    assert all(each.pop("took_s") > 0 for each in told.values())
    both = [{"kind": "the library", "count": 1}, {"kind": "triton_mm", "count": 1}]
    assert told == {
        "mm": {"choices": 2, "candidates": 3, "winners": both, "library_alone": False},
        "bmm": {"choices": 1, "candidates": 2, "winners": both[:1], "library_alone": True},
    }
    assert main(["advise", "autotune", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 choices among implementations took ")
    assert " s, 2 times among up to 3; won: the library once, triton_mm once\n" in out
    assert out.endswith("so that it is chosen once.\n")


def chosen(operation, *, args, at_s=1.0):
    """The lines of a trace that tell of a choice which took two seconds, half of them to compile."""
    lines = []
    for name, begin_s in (
        (f"{operation}_template_precompiling", at_s),
        (f"{operation}{CHOSEN_NAME}", at_s + 1),
    ):
        for mark, moment_s in (("B", begin_s), ("E", begin_s + 1)):
            event = {"name": name, "ts": moment_s * 1e6, "ph": mark, "args": args if mark == "E" else {}}
            lines += [
                b'V1130 07:41:44.1 1 torch/a.py:1] {"chromium_event": {}}',
                b"\t" + json.dumps(event).encode(),
            ]
    return lines


@pytest.mark.parametrize(
    ("args", "winner", "candidates"),
    [
        ({"autotune_choices_stats": '{"num_choices": 2, "best_kernel": "mm"}'}, "mm", 2),
        ({"autotune_choices_stats": "{"}, "", None),
        ({"autotune_choices_stats": 7}, "", None),
        ({}, "", None),
    ],
)
def test_a_choice_of_which_little_is_told_still_cost_its_seconds(args, winner, candidates):
    (choice,) = parse_choices(chosen("mm", args=args))
    assert choice == Choice(operation="mm", took_s=2.0, winner=winner, candidates=candidates)


def test_a_choice_that_torch_made_on_a_processor():
    """A linear layer of constant weights, with max-autotune: torch itself told of 28.1114 seconds."""
    log = Path(__file__).parents[1] / "data" / "torch_choices" / "packed_linear.log"
    (choice,) = read_choices(log)
    assert (choice.operation, choice.candidates) == ("packed_linear", 2)
    assert choice.winner == "cpp_CppMicroGemmFP32Vec_0"
    assert choice.took_s == pytest.approx(28.1103, abs=1e-3)


def test_where_the_library_won_each_time_the_others_can_be_spared(tmp_path, capsys):
    stats = {"autotune_choices_stats": json.dumps({"num_choices": 20, "best_kernel": "addmm"})}
    (tmp_path / "a.log").write_bytes(b"\n".join(chosen("addmm", args=stats) + chosen("addmm", args=stats)))
    assert main(["advise", "autotune", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "2 choices among implementations took 4.0 s to compile and measure:\n"
        "  addmm: 4.0 s, 2 times among up to 20; won: the library 2 times\n"
        "The library won each time: TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS=ATEN (of convolutions "
        "TORCHINDUCTOR_MAX_AUTOTUNE_CONV_BACKENDS=ATEN) spares the others. Other sizes may want others.\n"
    )
