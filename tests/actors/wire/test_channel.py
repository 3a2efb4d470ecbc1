"""Channels: everything arrives, once and in order, within its credit."""

from __future__ import annotations

import threading

import psutil
import pyarrow as pa
import pytest
import zmq

from slackwater.actors.wire.channel import Receiver, Sender, wait
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import END_NS
from slackwater.runtime.model.message import Mark
from tests.actors.wire.links import END, KEYS, Link, codec, is_lost, message, receive, speeds, until
from tests.support.told import message_of


def test_30_000_messages_arrive_once_and_in_order(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    count = 30_000

    def send_all() -> None:
        for number in range(count):
            sender.send(message(number), number)
        sender.send(END, count)

    thread = threading.Thread(target=send_all)
    thread.start()
    got = receive(receiver, count + 1)
    thread.join()
    assert speeds(got) == list(range(count))
    assert got[-1].progress.is_end
    assert (
        (sender.messages, sender.rows) == (receiver.messages, receiver.rows) == (count + 1, count)
    )
    assert sender.bytes == receiver.bytes
    assert receiver.refused == 0
    until(lambda: sender.poll() == [] and sender.is_settled, [sender])
    assert not is_lost(sender)
    assert not is_lost(receiver)


def test_a_channel_whose_stream_had_ended_before_it_waits_for_nothing(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    for end in (sender, receiver):
        end.had_ended()
    assert sender.is_settled
    assert receiver.has_ended
    sender.mark(Mark(1))
    sender.close()
    assert not is_lost(receiver)
    assert receiver.receive(0) == []
    assert receiver.refused == 0


def test_credit_bounds_what_a_sender_holds_for_a_slow_receiver(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    credit_rows, batch_rows, batches = 40_000, 10_000, 600  # 600 batches of 240 kB: 144 MB
    credit, sent, waiting, most_waiting = credit_rows, 0, 0, 0
    memory = psutil.Process()
    before, most_bytes = memory.memory_info().rss, 0
    while receiver.rows < batches * batch_rows:
        credit += sum(sender.poll())
        while credit >= batch_rows and sent < batches:  # as fast as it can
            sender.send(message(sent * batch_rows, batch_rows), 0)
            credit -= batch_rows
            sent += 1
        waiting = sent * batch_rows - receiver.rows
        most_waiting = max(most_waiting, waiting)
        for got, _ in receiver.receive(0, max_messages=1):  # one at a time
            receiver.grant(got.rows)
        most_bytes = max(most_bytes, memory.memory_info().rss - before)
        wait([sender, receiver], 0.02)
    assert most_waiting <= credit_rows
    assert most_bytes < 50e6


class Counting(Receiver):
    """Counts how often it asks its socket what is there."""

    asked = 0

    def _has_more(self) -> bool:
        self.asked += 1
        return super()._has_more()


@pytest.mark.parametrize(("most", "asks"), [(1, 0), (3, 2)])
def test_who_has_read_as_much_as_it_may_does_not_ask_for_more(most: int, asks: int) -> None:
    link = Link(is_local=True)
    receiver = Counting(keys=KEYS, codec=codec(), context=link.context, is_local=True)
    sender = link.sender(receiver)
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    for number in range(100):  # until as many lie there at once
        for _ in range(4):
            sender.send(message(number), 0)
        wait([receiver], 10.0)
        receiver.asked = 0
        if len(receiver.receive(0, max_messages=most)) == most:
            break
    else:
        pytest.fail(f"never {most} messages at once")
    assert receiver.asked == asks
    receiver.close()
    link.close()


def test_link_time_is_summed_over_messages(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(message(1), 100)
    sender.send(message(2), 200)
    until(lambda: bool(receiver.receive(250)) or receiver.messages == 2, [receiver])
    until(lambda: bool(receiver.receive(250)) or receiver.messages == 2, [receiver])
    assert receiver.link_ns == 150 + 50
    assert receiver.least_link_ns == 50


def test_no_message_is_said_to_have_travelled_for_less_than_no_time(link: Link) -> None:
    """The receiver reads its clock before the message is sent, and looks for it later."""
    receiver = link.receiver()
    link.sender(receiver).send(message(1), 7_300_250)
    until(lambda: bool(receiver.receive(250)), [receiver])
    assert (receiver.link_ns, receiver.least_link_ns) == (0, 0)


def test_a_message_too_long_for_a_frame_goes_in_pieces(link: Link) -> None:
    receiver = link.receiver(codec=codec(max_bytes=1_000))
    sender = link.sender(receiver, codec=codec(max_bytes=1_000))
    sender.send(message_of(None, -5, -6), 0)
    whole = message(0, rows=100)
    sender.send(message_of(whole.batch, 70, 71), 0)
    sender.send(END, 0)
    got = receive(receiver, 1 + 4 + 1)
    assert speeds(got) == list(range(100))
    promises = [(message.progress.promise_ns, message.progress.stimulus_ns) for message in got]
    assert promises == [*[(-5, -6)] * 4, (70, 71), (END_NS, 0)]


def test_ends_with_different_columns_refuse_each_other_by_name(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver, codec=codec(pa.schema([("flow", pa.int64())])))
    until(lambda: receiver.receive(0) == [] and receiver.refused == 1, [receiver])
    until(lambda: sender.poll() == [] and sender.refused == 1, [sender])
    assert "'flow'" in str(receiver.last_refusal)
    with pytest.raises(FrameError, match=r"'speed'.*'flow'"):
        sender.send(message_of(None, 0, 0), 0)
    assert not receiver.is_connected
    assert not sender.is_connected


def test_both_ends_know_when_they_are_connected(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    assert not receiver.is_connected
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    until(lambda: sender.poll() == [] and sender.is_connected, [sender])


def stream(receiver: Receiver, *, settles: bool) -> None:
    """Send 24 MB, more than the kernel buffers, and the end; close and leave."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sender = Sender(receiver.endpoint, keys=KEYS, codec=codec(), context=context)
    for number in range(100):
        sender.send(message(number * 10_000, 10_000), 0)
    sender.send(END, 0)
    if settles:
        until(lambda: sender.poll() is not None and sender.is_settled, [sender])
    sender.close()
    sender.close()
    context.term()


def test_a_sender_that_closes_when_it_is_settled_loses_nothing(link: Link) -> None:
    receiver = link.receiver()
    thread = threading.Thread(target=stream, args=(receiver,), kwargs={"settles": True})
    thread.start()
    while not receiver.has_ended:
        for got, _ in receiver.receive(0, max_messages=1):
            if got.rows:
                receiver.grant(got.rows)
        wait([receiver], 0.02)
    thread.join()
    assert receiver.rows == 1_000_000
    assert not is_lost(receiver)


def test_a_sender_that_closes_too_early_is_noticed_if_it_loses_a_frame(link: Link) -> None:
    receiver = link.receiver()
    stream(receiver, settles=False)
    until(
        lambda: receiver.receive(0) == [] and (receiver.has_ended or is_lost(receiver)),
        [receiver],
    )
    assert receiver.has_ended == (receiver.rows == 1_000_000)


def test_after_the_end_a_receiver_sends_and_takes_nothing_more(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(END, 0)
    sender.send(message(1), 0)
    until(lambda: bool(receiver.receive(0)) or receiver.refused == 1, [receiver])
    until(lambda: receiver.receive(0) == [] and receiver.refused == 1, [receiver])
    assert receiver.has_ended
    receiver.grant(5)
    until(lambda: sender.poll() == [] and sender.is_settled, [sender])
    receiver.close()
    assert sender.poll() == []
    assert not is_lost(sender)
