import math
import signal
import threading

import pytest

from ett_trainer_hooks.pipeline.notice import Notice
from ett_trainer_hooks.recording import termination


@pytest.fixture(autouse=True)
def no_handlers():
    """Signals as in a fresh process, until the test is over."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def notice(hands):
    with Notice({signal.SIGTERM: 30.0, signal.SIGUSR2: 60.0}, clock=lambda: hands.now_s) as listening:
        yield listening


def test_without_a_signal_there_is_no_notice_and_no_end(notice):
    assert not notice.came
    assert notice.left_s == math.inf


@pytest.mark.parametrize(("number", "left_s"), [(signal.SIGTERM, 30.0), (signal.SIGUSR2, 60.0)])
def test_time_runs_from_the_signal_on(notice, hands, number, left_s):
    signal.raise_signal(number)
    assert (notice.came, notice.signal, notice.left_s) == (True, number, left_s)
    hands.move(left_s + 1)
    assert notice.left_s == -1


def test_of_several_signals_the_one_that_leaves_least_time_counts(notice, hands):
    signal.raise_signal(signal.SIGUSR2)
    hands.move(10)
    signal.raise_signal(signal.SIGTERM)
    assert (notice.signal, notice.left_s) == (signal.SIGTERM, 30.0)
    signal.raise_signal(signal.SIGUSR2)
    hands.move(10)
    signal.raise_signal(signal.SIGTERM)
    assert (notice.signal, notice.left_s) == (signal.SIGTERM, 20.0)


def test_afterwards_handlers_are_as_they_were():
    with Notice():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL


def test_a_handler_that_the_program_set_meanwhile_stays():
    def theirs(*_):
        """Of the program."""

    with Notice():
        signal.signal(signal.SIGTERM, theirs)
    assert signal.getsignal(signal.SIGTERM) is theirs


def test_a_signal_that_was_ignored_stays_so():
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    with Notice() as listening:
        signal.raise_signal(signal.SIGUSR2)
        assert not listening.came


def test_outside_the_main_thread_nothing_is_heard():
    heard = []

    def elsewhere():
        with Notice():
            heard.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert heard == [signal.SIG_DFL]


def test_the_recorder_tells_of_no_failure_while_a_notice_is_listened_for(bench):
    """The job trains and saves on: it fails, or leaves, only later."""
    made = bench()
    termination.install(made.recorder)
    with Notice() as listening:
        signal.raise_signal(signal.SIGTERM)
        assert listening.came
    assert not made.written()
    assert isinstance(signal.getsignal(signal.SIGTERM), termination.Told)


def test_a_handler_of_the_program_is_called_as_well():
    calls = []
    signal.signal(signal.SIGUSR2, lambda number, _: calls.append(number))
    with Notice() as listening:
        signal.raise_signal(signal.SIGUSR2)
        assert listening.came
    assert calls == [signal.SIGUSR2]


def test_a_grace_that_makes_no_sense_is_refused_by_the_name_of_its_signal():
    with pytest.raises(ValueError, match="grace after SIGTERM must be 0 s or more"):
        Notice({signal.SIGTERM: -1.0})
