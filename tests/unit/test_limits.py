"""The limits of time and memory of every test can end one."""

import signal
import time

import numpy as np
import pytest

from tests.limits import BYTES, LimitError, limited_memory, limited_time


def test_time():
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]
    assert before[1] > 0, "this very test has no limit"
    began = time.monotonic()
    with pytest.raises(LimitError, match=r"more than 0\.1 seconds"), limited_time(0.1):
        time.sleep(20)
    assert time.monotonic() - began < 10
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < before[1]
    assert signal.getsignal(signal.SIGALRM) is before[0]


def test_time_where_sigint_is_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(LimitError), limited_time(0.1):
            time.sleep(20)
    finally:
        signal.signal(signal.SIGINT, before)


def test_memory():
    with pytest.raises(LimitError, match=r"took 0\.[12] GiB"), limited_memory(50 * 2**20):
        assert np.ones(20 * 2**20).sum() > 0
    with limited_memory(50 * 2**20):
        assert np.ones(2**20).sum() > 0
    assert BYTES == 3 * 2**30
