"""A checkpoint: the part of each slot, all of one cut through a job's streams.

```
slot ─▶ Cut ─▶ SlotPart ─┐                     each new slot, of the parts that had its stages:
slot ─▶ Cut ─▶ SlotPart ─┴▶ consistent_parts ─▶ part_of_stages ─▶ restore_part
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.plan.former_names import SAME_NAMES, FormerNames
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule import Slot, SlotResults
from slackwater.runtime.schedule.cut import Cut
from slackwater.runtime.schedule.rearranged import (
    results_of_sinks,
    state_of_stages,
    values_of,
)

__all__ = [
    "SlotPart",
    "consistent_parts",
    "granted_by",
    "part_of_stages",
    "restore_part",
    "saved_results",
    "with_credit",
]


class SlotPart(NamedTuple):
    """A slot's part of a checkpoint, as plain values (runtime/model/plain.py).

    Attributes:
        slot: name of the slot.
        number: number of the checkpoint.
        state: `Slot.snapshot` at the mark.
        results: state of the slot's `SlotResults` at the mark.
        messages: {channel from another slot: messages on their way at the mark, in order}.
        positions: {sink: its position at the mark}, of sinks that have one.
    """

    slot: str
    number: int
    state: dict[str, Any]
    results: dict[str, Any]
    messages: dict[str, list[Any]]
    positions: dict[str, bytes]

    @classmethod
    def of(
        cls,
        slot: str,
        cut: Cut,
        results: dict[str, Any],
        positions: Mapping[str, bytes],
    ) -> SlotPart:
        """Return the part of a complete cut.

        Args:
            slot: name of the slot.
            cut: cut of the slot, which is complete.
            results: state of its `SlotResults`, saved when the cut was made.
            positions: {sink: its position}, as the cut was made.
        """
        messages = {
            channel: to_plain(came, where=channel) for channel, came in cut.messages.items()
        }
        return cls(slot, cut.number, cut.state, results, messages, dict(positions))


def consistent_parts(parts: Mapping[str, SlotPart]) -> dict[str, SlotPart]:
    """Return the parts of one checkpoint, with the credit that was on its way.

    What the receiver had given by its cut counts, whether the sender had got it by its own, or had
    got more since: rows that the receiver took after its cut are delivered, and paid for, again.
    """
    granted = {c: rows for part in parts.values() for c, rows in granted_by(part).items()}
    return {slot: with_credit(part, granted) for slot, part in parts.items()}


def granted_by(part: SlotPart) -> dict[str, int]:
    """Return the credit that a slot had given by its cut, {channel: rows}."""
    return dict(part.state["stream"]["granted"])


def with_credit(part: SlotPart, granted: Mapping[str, int]) -> SlotPart:
    """Return a part with the credit that all slots had given, {channel: rows}."""
    stream = part.state["stream"]
    credit = {
        channel: rows + granted[channel] - stream["credited"][channel]
        for channel, rows in stream["credit"].items()
    }
    credited = {channel: granted[channel] for channel in stream["credited"]}
    stream = {**stream, "credit": credit, "credited": credited}
    return part._replace(state={**part.state, "stream": stream})


def part_of_stages(
    stages: Sequence[Stage],
    parts: Iterable[SlotPart],
    *,
    slot: str,
    names: FormerNames = SAME_NAMES,
) -> SlotPart:
    """Return the part of a slot whose stages may have moved, or been renamed.

    Args:
        stages: stages of the slot now, at least one.
        parts: parts of the slots that had them, with the credit that was on its way.
        slot: name of the slot.
        names: names in the parts.
    """
    then = {name: part for part in parts for name in part.state["stream"]["stages"]}
    was_in = {stage.name: then[names.then(stage.name)] for stage in stages}
    sinks = {stage.name: was_in[stage.name]._asdict() for stage in stages if stage.kind == "sink"}
    number = next(iter(was_in.values())).number
    channels = {c.name: was_in[s.name]._asdict() for s in stages for c in s.inputs}
    return SlotPart(
        slot=slot,
        number=number,
        state=state_of_stages(
            stages, {name: part.state for name, part in was_in.items()}, list(was_in), names
        ),
        results=results_of_sinks({sink: own["results"] for sink, own in sinks.items()}, names),
        messages=values_of(channels, "messages", names),
        positions=values_of(sinks, "positions", names),
    )


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
