"""Which configurations of a list never won."""

from ett_core.events import Cache, TunedKernel
from ett_core.tuning import Tuning, advise, as_code, config_of, tunings_of

LIST = tuple(config_of({"BLOCK": block, "num_warps": 4, "num_stages": 2}) for block in (64, 128, 256, 512))


def tuned(winner, *, seconds=2.0, candidates=LIST, **fields):
    return Tuning(kernel="gather", config=winner, tuned_s=seconds, candidates=candidates, **fields)


def test_the_list_is_shortened_to_what_won_most_frequent_first():
    (kernel,) = advise([tuned(LIST[2]), tuned(LIST[0]), tuned(LIST[2])])
    assert kernel.reduced == (LIST[2], LIST[0])
    assert (kernel.tunings, kernel.tuned_s, kernel.expected_s) == (3, 6.0, 3.0)


def test_one_configuration_needs_no_tuning():
    (kernel,) = advise([tuned(LIST[1]), tuned(LIST[1])])
    assert (kernel.reduced, kernel.expected_s) == ((LIST[1],), 0.0)


def test_a_list_of_which_all_won_stays():
    (kernel,) = advise([tuned(config) for config in LIST])
    assert (kernel.reduced, kernel.expected_s) == ((), kernel.tuned_s)


def test_a_list_that_the_compiler_makes_cannot_be_shortened():
    (kernel,) = advise([tuned(LIST[0], candidates=None)])
    assert (kernel.candidates, kernel.reduced, kernel.expected_s) == (None, (), 2.0)


def test_a_winner_that_was_searched_for_says_nothing_about_the_list():
    (kernel,) = advise([tuned(LIST[0], searched=True)])
    assert kernel.reduced == ()


def test_a_winner_beside_the_list_leaves_it_as_it_is():
    (kernel,) = advise([tuned(config_of({"BLOCK": 32, "num_warps": 1, "num_stages": 1}))])
    assert kernel.reduced == ()


def test_the_dearest_kernel_comes_first():
    other = Tuning(kernel="scatter", config=LIST[0], tuned_s=9.0)
    assert [kernel.kernel for kernel in advise([tuned(LIST[0]), other])] == ["scatter", "gather"]


def test_a_list_that_changed_is_another():
    assert len(advise([tuned(LIST[0]), tuned(LIST[0], candidates=LIST[:2])])) == 2


def test_a_configuration_as_code():
    config = config_of({"B": 1, "A": 2, "num_warps": 4, "num_stages": 3, "num_ctas": 2})
    assert as_code(config) == "triton.Config({'A': 2, 'B': 1}, num_ctas=2, num_stages=3, num_warps=4)"


def told(seq, *, writer="w", **fields):
    head = {"job_id": "j", "writer": writer, "seq": seq, "attempt": 0, "rank": 0, "time": 1.0 + seq}
    return Cache(**head, cache="autotune", tuned=TunedKernel(**fields) if fields else None)


def test_journals_tell_of_tunings_process_by_process_and_a_search_belongs_to_the_one_before_it():
    """Whatever the order of the lines; a kernel without a list is searched for alone."""
    lists = {"kernel": "gather", "candidates": tuple(map(dict, LIST))}
    events = [
        told(0),
        told(1, tuned_s=2.0, config=dict(LIST[1]), **lists),
        told(2, tuned_s=0.5, config={"XBLOCK": 8}, kernel="made"),
        told(3, tuned_s=1.0, config={"BLOCK": 96}, kernel="gather", searched=True),
        told(4, tuned_s=3.0, config={"XBLOCK": 4}, kernel="alone", searched=True),
        told(1, writer="v", tuned_s=4.0, config=dict(LIST[2]), **lists),
    ]
    assert tunings_of([*events, *reversed(events)]) == [
        tuned(LIST[2], seconds=4.0),
        tuned((("BLOCK", 96),), seconds=3.0, searched=True),
        Tuning(kernel="made", config=(("XBLOCK", 8),), tuned_s=0.5),
        Tuning(kernel="alone", config=(("XBLOCK", 4),), tuned_s=3.0, searched=True),
    ]
