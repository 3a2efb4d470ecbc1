"""A call that waits for news of a slot: it returns when the loop has worked, and not before."""

from __future__ import annotations

import threading

import pytest

from slackwater.actors.slot import report as module
from slackwater.actors.slot.report import News

LONG_S = 30.0
SHORT_S = 0.05


class Watch:
    """News of a slot whose loop the test plays, and which of its calls came back early."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "LOOK_S", 0.005)
        self.news, self.over = News(), threading.Event()

    def returns_in(self, within_s: float) -> bool:
        """Whether a call that may wait for so much longer is back by then."""
        call = threading.Thread(target=self.news.wait, args=[LONG_S], kwargs={"over": self.over})
        call.start()
        call.join(within_s)
        is_back = not call.is_alive()
        if not is_back:
            self.over.set()
            call.join(LONG_S)
            self.over.clear()
        return is_back


def test_the_first_call_is_answered_and_the_next_when_the_loop_has_worked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch(monkeypatch)
    watch.news.quiet_since_ns = 7
    assert watch.returns_in(LONG_S)
    assert not watch.returns_in(SHORT_S), "it has slept since"
    watch.news.quiet_since_ns = 8
    assert watch.returns_in(LONG_S)


def test_a_loop_that_is_within_a_slice_always_has_news(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    watch.news.quiet_since_ns = None
    assert watch.returns_in(LONG_S)
    assert watch.returns_in(LONG_S)
    watch.news.quiet_since_ns = 9
    assert watch.returns_in(LONG_S), "what came of that slice was not told"


def test_a_call_waits_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    watch.news.quiet_since_ns = 7
    for _ in range(2):
        watch.news.wait(0.01, over=watch.over)
