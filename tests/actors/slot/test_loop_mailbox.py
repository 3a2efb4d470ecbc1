from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from slackwater.actors.slot.loop_mailbox import Mailbox

SOON_S = 10.0


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(call()), daemon=True)
    thread.start()
    return thread, said


def test_what_is_asked_is_done_by_the_thread_that_obeys() -> None:
    woken = threading.Event()
    mailbox = Mailbox(woken.set)
    thread, said = in_thread(lambda: mailbox.call(threading.get_ident, within_s=SOON_S))
    assert woken.wait(SOON_S)
    assert mailbox.waiting
    mailbox.run_posted()
    thread.join(SOON_S)
    assert said == [threading.get_ident()]
    assert not mailbox.waiting


def test_what_was_given_up_is_not_done_later() -> None:
    mailbox, done = Mailbox(lambda: None), []
    with pytest.raises(TimeoutError):
        mailbox.call(lambda: done.append(1), within_s=0)
    mailbox.run_posted()
    assert done == []


def test_what_fails_fails_for_whoever_asked_and_not_for_the_loop() -> None:
    mailbox = Mailbox(lambda: None)
    first, second = mailbox.post(lambda: 1 / 0), mailbox.post(lambda: 2)
    mailbox.run_posted()
    assert isinstance(first.exception(), ZeroDivisionError)
    assert second.result() == 2


def test_once_the_loop_has_ended_what_waits_is_done_and_the_rest_at_once() -> None:
    mailbox = Mailbox(lambda: None)
    waits = mailbox.post(lambda: 1)
    mailbox.close()
    assert waits.result(0) == 1
    assert mailbox.call(lambda: 2, within_s=0) == 2
