"""A checkpoint: the part of each slot, all of one cut through a job's streams.

```
slot ─▶ Cut ─▶ SlotPart ─┐                       each new slot, from its part:
slot ─▶ Cut ─▶ SlotPart ─┴▶ consistent_parts ──▶ restore_slot, restore_results
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule import Slot, SlotResults
from slackwater.runtime.schedule.cut import Cut

__all__ = ["SlotPart", "consistent_parts", "restore_part", "saved_results"]


class SlotPart(NamedTuple):
    """A slot's part of a checkpoint, as plain values (runtime/model/plain.py).

    Attributes:
        slot: name of the slot.
        number: number of the checkpoint.
        state: `Slot.snapshot` at the mark.
        results: state of the slot's `SlotResults` at the mark.
        messages: {channel from another slot: messages on their way at the mark, in order}.
    """

    slot: str
    number: int
    state: dict[str, Any]
    results: dict[str, Any]
    messages: dict[str, list[Any]]

    @classmethod
    def of(cls, slot: str, cut: Cut, results: dict[str, Any]) -> SlotPart:
        """Return the part of a complete cut.

        Args:
            slot: name of the slot.
            cut: cut of the slot, which is complete.
            results: state of its `SlotResults`, saved when the cut was made.
        """
        messages = {
            channel: to_plain(came, where=channel) for channel, came in cut.messages.items()
        }
        return cls(slot, cut.number, cut.state, results, messages)


def consistent_parts(parts: Mapping[str, SlotPart]) -> dict[str, SlotPart]:
    """Return the parts of one checkpoint, with the credit that was on its way.

    What the receiver had given by its cut counts, whether the sender had got it by its own, or had
    got more since: rows that the receiver took after its cut are delivered, and paid for, again.
    """
    granted = {
        channel: rows
        for part in parts.values()
        for channel, rows in part.state["stream"]["granted"].items()
    }
    return {
        slot: part._replace(state=_credited(part.state, granted)) for slot, part in parts.items()
    }


def _credited(state: Mapping[str, Any], granted: Mapping[str, int]) -> dict[str, Any]:
    stream = state["stream"]
    credit = {
        channel: rows + granted[channel] - stream["credited"][channel]
        for channel, rows in stream["credit"].items()
    }
    credited = {channel: granted[channel] for channel in stream["credited"]}
    return {**state, "stream": {**stream, "credit": credit, "credited": credited}}


def saved_results(results: SlotResults, number: int) -> dict[str, Any]:
    """Return the state of a slot's results at its cut, as plain values.

    What its sinks hold belongs to the checkpoint from now on; see `SlotResults.complete`.

    Args:
        results: results of the slot's sinks.
        number: number of the checkpoint.
    """
    results.cut(number)
    plain: dict[str, Any] = to_plain(save(results), where="results")
    return plain


def restore_part(part: SlotPart, slot: Slot, results: SlotResults, now_ns: int) -> None:
    """Let a new slot and its results go on from their part of a checkpoint.

    Once the sinks have begun, `results.resumes` says what they have, and then
    `results.complete(part.number)` what they are given of what was held.

    Args:
        part: part of the slot, one of `consistent_parts`.
        slot: a new slot of the same stages.
        results: new results of its sinks.
        now_ns: time at which the messages that were on their way are delivered.

    Raises:
        SettingError: the part is of other stages or channels, or of another version.
    """
    slot.restore(part.state)
    restore(results, from_plain(part.results))
    for channel, messages in part.messages.items():
        for message in messages:
            slot.deliver(channel, from_plain(message), now_ns)
