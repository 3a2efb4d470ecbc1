"""The queues of a stage: what is urgent lends its urgency to what stands before it."""

from __future__ import annotations

from random import Random

from slackwater.runtime.model import START_NS, Message, batch_of
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule.queues import PathQueues
from tests.support.told import message_of


def message(*stimuli_ns: int, promise_stimulus_ns: int = 0) -> Message:
    """A message whose rows have these stimuli, in the order of their events."""
    if not stimuli_ns:
        return message_of(None, 1, promise_stimulus_ns)
    rows = list(range(len(stimuli_ns)))
    return message_of(batch_of(rows, {"n": rows}, list(stimuli_ns)), 1, promise_stimulus_ns)


def queues(**channels: list[Message]) -> PathQueues:
    found = PathQueues(channels)
    for channel, messages in channels.items():
        for one in messages:
            found.push(channel, one, 100)
    return found


def taken(found: PathQueues) -> list[str]:
    names = []
    while (item := found.pop(200)) is not None:
        names.append(item[0])
    return names


def test_a_message_counts_by_its_earliest_row_wherever_that_stands() -> None:
    found = queues(a=[message(50, 20, 60)], b=[message(30)])
    assert found.earliest_stimulus_ns() == 20
    assert taken(found) == ["a", "b"]


def test_a_long_message_is_taken_in_slices_and_promises_with_its_last() -> None:
    found = queues(a=[message(50, 20, 60, 10, 70)], b=[message(30)])
    order = []
    while (item := found.pop(200, 2)) is not None:
        channel, part, came_ns = item
        assert part.batch is not None
        order.append(
            (channel, part.batch.stimulus_time_ns.tolist(), part.progress.promise_ns, came_ns)
        )
        assert found.rows == 6 - sum(len(stimuli) for _, stimuli, _, _ in order)
    assert order == [
        ("a", [50, 20], START_NS, 100),
        ("a", [60, 10], START_NS, 100),
        ("b", [30], 1, 100),
        ("a", [70], 1, 100),
    ]
    assert not found.has_any
    assert found.wait_ns == 6 * 100


def test_what_stands_before_a_row_is_as_urgent_as_the_row() -> None:
    """A channel behind a gate steps back in stimulus; on it nothing overtakes."""
    found = queues(a=[message(50), message(20), message(60)], b=[message(30), message(70)])
    assert found.earliest_stimulus_ns() == 20
    assert taken(found) == ["a", "a", "b", "a", "b"]


def test_a_promise_alone_counts_by_its_own_stimulus() -> None:
    assert taken(queues(a=[message(promise_stimulus_ns=5)], b=[message(4), message(6)])) == [
        "b",
        "a",
        "b",
    ]


def test_whatever_waits_the_earliest_of_it_is_known_also_after_a_restore() -> None:
    chance = Random(3)  # noqa: S311 - a draw, not a secret
    names = "abcdefghijkl"
    found = PathQueues(names)
    waiting: dict[str, list[int]] = {name: [] for name in names}
    for step in range(3_000):
        if chance.random() < 0.5:
            stimuli = [chance.randrange(20) for _ in range(chance.choice([1, 2, 5]))]
            name = chance.choice(names)
            found.push(name, message(*stimuli), step)
            waiting[name].append(min(stimuli))
        elif (item := found.pop(step)) is not None:
            first = {name: min(own) for name, own in waiting.items() if own}
            assert item[0] == min(first, key=first.__getitem__), "of equals the first channel"
            waiting[item[0]].pop(0)
        if step % 100 == 0:
            state, found = save(found), PathQueues(names)
            restore(found, state)
        least = min([min(own) for own in waiting.values() if own], default=None)
        assert found.earliest_stimulus_ns() == least
        assert found.rows == sum(
            one[1].rows for path in found._paths.values() for one in path.messages
        )
