"""Work on several things at once: in order, ended by the first error, never in the way of an end."""

import threading

import pytest

from ett_trainer_hooks.pipeline.side_by_side import side_by_side

HANGS = """
import threading
from ett_trainer_hooks.pipeline.side_by_side import side_by_side

hang, both = threading.Event(), threading.Barrier(3)
def work(_):
    both.wait()
    hang.wait()

threading.Thread(target=side_by_side, args=(work, [1, 2], 2, "hanging"), daemon=True).start()
both.wait()
print("leaves")
"""


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_results_come_in_the_order_of_the_items(workers):
    assert side_by_side(lambda item: item * 10, iter(range(5)), workers, "ten") == [0, 10, 20, 30, 40]
    assert side_by_side(abs, [], workers, "none") == []


def test_several_are_worked_on_at_once():
    both = threading.Barrier(2)
    assert sorted(side_by_side(lambda _: both.wait(30.0), [1, 2], 2, "both")) == [0, 1]


def test_the_first_error_is_raised_and_nothing_more_is_begun():
    begun = []

    def work(item):
        begun.append(item)
        raise OSError(f"no room for {item}")

    with pytest.raises(OSError, match="no room for 1"):
        side_by_side(work, [1, 2, 3], 1, "failing")
    assert begun == [1]


def test_threads_that_hang_do_not_keep_a_process_from_ending(start):
    out, err = start(HANGS).communicate(timeout=60)
    assert (out, err) == (b"leaves\n", b"")
