"""The disk's thread: in order, not after a failure, and never with more waiting than there is room for."""

import threading

import pytest

from pseudo_extended.store.disk import Disk


def test_in_order():
    disk, done = Disk(), []
    for i in range(20):
        disk.give(lambda i=i: done.append(i))
    disk.wait()
    assert done == list(range(20))
    assert not disk.is_busy


def test_room_is_made_by_waiting():
    disk, done, go = Disk(), [], threading.Event()
    disk.give(go.wait)
    for i in range(5):
        disk.give(lambda i=i: done.append(i))
    threading.Timer(0.1, go.set).start()
    disk.make_room(2)
    assert len(done) >= 3  # of six things, the first among them, at most two are left


def test_there_is_room():
    disk, go = Disk(), threading.Event()
    disk.give(go.wait)
    disk.make_room(1)  # does not wait for what will not end
    go.set()
    disk.wait()


def test_nothing_after_a_failure():
    disk, done = Disk(), []

    def refuse() -> None:
        raise OSError("no space left")

    disk.give(refuse)
    with pytest.raises(OSError, match="no space left"):
        disk.wait()
    with pytest.raises(OSError, match="no space left"):
        disk.give(lambda: done.append(0))
    assert not done
