"""The two ends that `hop` measures: actors on two nodes, and turns of round trips between them."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import ray
import zmq
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from benchmarks.frame import check
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.wire.channel import ChannelKeys, ChannelPoller, Receiver, Sender
from slackwater.actors.wire.frames import FrameCodec
from slackwater.actors.wire.local_sockets import SCHEME, host_identity
from slackwater.runtime.config import Limits
from slackwater.runtime.model import START_NS, Batch, Message, Progress

__all__ = ["BETWEEN_HOSTS", "OURS", "RAY", "SIZES", "HopEnds", "summary"]

SIZES = (10, 1_000)
SCHEMA = pa.schema(
    [(name, pa.int32()) for name in ("area", "delay_s", "vehicle", "line")]
    + [("speed", pa.float32())]
)
GRANT_ROWS = Limits().credit_rows // 8  # what a slot owes a sender before it says so
TIMEOUT_S = 120.0
LOST_S = 10.0  # a batch that is not back by then will not come
OURS, BETWEEN_HOSTS = "ours", "ours, between hosts"
RAY = {"Ray, RecordBatch": True, "Ray, NumPy": False}  # {way: whether the payload is Arrow's}


class HopEnds:
    """An actor on each of two nodes, connected.

    Attributes:
        is_local: whether the channel that a job would open between them is a Unix socket.
    """

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        keys = ChannelKeys.generate()
        actor: Any = ray.remote(num_cpus=1)(HopActor)
        self._here, self._there = (
            actor.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.node_id, soft=False)
            ).remote(keys, node.ip)
            for node in nodes
        )
        pair = (self._here, self._there)
        hosts = _get([end.identify.remote() for end in pair])
        ends = _get([end.bind.remote(peer) for end, peer in zip(pair, hosts[::-1], strict=True)])
        _get([end.connect.remote(at) for end, at in zip(pair, ends[::-1], strict=True)])
        self.is_local = all(end[OURS].startswith(SCHEME) for end in ends)

    def measure(
        self, ways: Sequence[str], *, rows: int, turns: int, trips: int
    ) -> dict[str, npt.NDArray[np.int64]]:
        """Return {way: times of shape (turns, trips), ns}; a shorter turn before warms all up."""
        here, there = self._here, self._there
        took: dict[str, list[list[int]]] = {way: [] for way in ways}
        for turn in range(turns + 1):
            count = trips if turn else trips // 4
            for way, times in took.items():
                if way in RAY:
                    calls = [here.call.remote(there, rows, count, as_arrow=RAY[way])]
                else:
                    calls = [here.travel.remote(way, rows, count), there.serve.remote(way, count)]
                found = _get(calls)[0]
                if turn:
                    times.append(found)
        return {way: np.array(times) for way, times in took.items()}


def summary(times_ns: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return p50, p99 and max of times of shape (turns, trips), and how far p50 of turns differ."""
    p50, p99, most = (float(np.quantile(times_ns, q)) / 1e6 for q in (0.5, 0.99, 1))
    by_turn = np.median(times_ns, axis=1) / 1e6
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": most,
        "p50_by_turn_ms": [float(by_turn.min()), float(by_turn.max())],
    }


class HopActor:
    """One end: sends to its peer and receives from it, over our channels and over Ray."""

    def __init__(self, keys: ChannelKeys, address: str) -> None:
        gc.collect()
        gc.freeze()  # as a slot does
        self._keys, self._address = keys, address
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._receivers: dict[str, Receiver] = {}
        self._senders: dict[str, Sender] = {}
        self._watches: dict[str, ChannelPoller] = {}
        self._owed = 0

    def identify(self) -> str | None:
        """Return our host's identity."""
        return host_identity(self._address)

    def bind(self, peer: str | None) -> dict[str, str]:
        """Listen on both of our ways: {way: endpoint}.

        Args:
            peer: the identity of the peer's host.
        """
        is_local = peer is not None and peer == self.identify()  # as a slot decides
        for way, is_here in ((OURS, is_local), (BETWEEN_HOSTS, False)):
            self._receivers[way] = Receiver(
                keys=self._keys,
                codec=_codec(),
                context=self._context,
                bind_host=self._address,
                is_local=is_here,
            )
        return {way: receiver.endpoint for way, receiver in self._receivers.items()}

    def connect(self, endpoints: dict[str, str]) -> None:
        """Connect to the peer: {way: endpoint}."""
        for way, endpoint in endpoints.items():
            self._senders[way] = Sender(
                endpoint, keys=self._keys, codec=_codec(), context=self._context
            )
            self._watches[way] = ChannelPoller(
                {"in": self._receivers[way], "out": self._senders[way]}
            )

    def serve(self, way: str, trips: int) -> None:
        """Send so many batches back."""
        for _ in range(trips):
            self._send(way, self._next(way))

    def travel(self, way: str, rows: int, trips: int) -> list[int]:
        """Return the time of each round trip of a batch through our channels, ns."""
        batch = _batch(rows)
        message = Message(batch, Progress.after(batch, START_NS))
        took = []
        for _ in range(trips):
            began_ns = time.perf_counter_ns()
            self._send(way, message)
            back = self._next(way)
            took.append(time.perf_counter_ns() - began_ns)
        assert back.batch is not None
        check(_is_same(back.batch.columns, _columns(rows)), "the channel changed the batch")
        return took

    def echo(self, payload: Any) -> Any:
        """Return it, as any Ray actor would."""
        return payload

    def call(self, peer: Any, rows: int, trips: int, *, as_arrow: bool) -> list[int]:
        """Return the time of each round trip of a batch through a Ray actor call, ns."""
        columns = {**_columns(rows), "event": np.arange(rows), "stimulus": np.arange(rows)}
        payload: Any = pa.RecordBatch.from_pydict(columns) if as_arrow else columns
        took = []
        for _ in range(trips):
            began_ns = time.perf_counter_ns()
            back = ray.get(peer.echo.remote(payload))
            took.append(time.perf_counter_ns() - began_ns)
        same = back.equals(payload) if as_arrow else _is_same(back, columns)
        check(same, "Ray changed the batch")
        return took

    def _send(self, way: str, message: Message) -> None:
        sender = self._senders[way]
        if "out" in self._watches[way].ready():
            sender.poll()
        sender.send(message, time.time_ns())

    def _next(self, way: str) -> Message:
        receiver = self._receivers[way]
        deadline_s = time.monotonic() + LOST_S
        while time.monotonic() < deadline_s:
            self._watches[way].wait(LOST_S)
            for message, _ in receiver.receive(time.time_ns(), max_messages=1):
                self._owed += message.rows
                if self._owed >= GRANT_ROWS:
                    receiver.grant(self._owed)
                    self._owed = 0
                return message
        raise TimeoutError("a batch got lost between two nodes")


def _codec() -> FrameCodec:
    return FrameCodec(SCHEMA, columns=SCHEMA.names)


def _columns(rows: int) -> dict[str, Any]:
    numbers = np.arange(rows, dtype=np.int32)
    columns: dict[str, Any] = {name: numbers * place for place, name in enumerate(SCHEMA.names)}
    columns["speed"] = (numbers / 3).astype(np.float32)
    return columns


def _batch(rows: int) -> Batch:
    numbers = np.arange(rows, dtype=np.int64)
    return Batch(event_time_ns=numbers, stimulus_time_ns=numbers, columns=_columns(rows))


def _is_same(one: Any, other: Any) -> bool:
    return all(np.array_equal(one[name], values) for name, values in other.items())


def _get(refs: list[Any]) -> list[Any]:
    found: list[Any] = ray.get(refs, timeout=TIMEOUT_S)
    return found
