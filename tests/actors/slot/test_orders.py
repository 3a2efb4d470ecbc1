from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from actors.slot.orders import Orders

SOON_S = 10.0


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(call()), daemon=True)
    thread.start()
    return thread, said


def test_what_is_asked_is_done_by_the_thread_that_obeys() -> None:
    woken = threading.Event()
    orders = Orders(woken.set)
    thread, said = in_thread(lambda: orders.ask(threading.get_ident, within_s=SOON_S))
    assert woken.wait(SOON_S)
    assert orders.waiting
    orders.obey()
    thread.join(SOON_S)
    assert said == [threading.get_ident()]
    assert not orders.waiting


def test_what_was_given_up_is_not_done_later() -> None:
    orders, done = Orders(lambda: None), []
    with pytest.raises(TimeoutError):
        orders.ask(lambda: done.append(1), within_s=0)
    orders.obey()
    assert done == []


def test_what_fails_fails_for_whoever_asked_and_not_for_the_loop() -> None:
    orders = Orders(lambda: None)
    first, second = orders.tell(lambda: 1 / 0), orders.tell(lambda: 2)
    orders.obey()
    assert isinstance(first.exception(), ZeroDivisionError)
    assert second.result() == 2


def test_once_the_loop_has_ended_what_waits_is_done_and_the_rest_at_once() -> None:
    orders = Orders(lambda: None)
    waits = orders.tell(lambda: 1)
    orders.close()
    assert waits.result(0) == 1
    assert orders.ask(lambda: 2, within_s=0) == 2
