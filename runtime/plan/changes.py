"""Changes along paths: streams that carry them, and steps that refuse them.

```
trades ──▶ to_table ──▶ filter ──▶ aggregate     to_table  makes retractions
                                                 filter    passes them on
                                                 windows   refuse them, by name
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import READY_ONLY, ReleaseRule
from slackwater.runtime.plan.arrivals import sources_upstream
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.plan.traits import ChangeKind, Changes, Role

__all__ = [
    "Carried",
    "carried_by",
    "changes_text",
    "check_changes",
    "late_changes_text",
    "splitting",
]

_REVISIONS = "rows may leave again, with more rows in them"
_UPDATES: dict[Changes, str] = {
    "upserts": "updates without the rows that they replace",
    "retractions": "updates with the rows that they replace",
}
_INSERTS: frozenset[ChangeKind] = frozenset({"inserts"})
_WHOLE: frozenset[Changes] = frozenset({"upserts", "retractions"})
"""Changes of which each must be there, in its place."""
_USES = "an aggregate without window=, a join without within=, to_table, or a sink"


class Carried(NamedTuple):
    """Changes that rows of a stream carry.

    Attributes:
        changes: the changes; "none" if all rows are inserts.
        made_by: name of the step that makes them; "" if none does.
        kinds: kinds of change that its rows may be.
    """

    changes: Changes
    made_by: str = ""
    kinds: frozenset[ChangeKind] = _INSERTS

    @property
    def takes_back(self) -> bool:
        """Whether a row may go that came before."""
        if self.changes == "retractions":
            return self.kinds != _INSERTS
        return self.changes == "upserts" and "deletions" in self.kinds


def carried_by(steps: Mapping[str, Step], name: str) -> Carried:
    """Return the changes that leave a step.

    Args:
        steps: {name: step} of a flow.
        name: name of the step.
    """
    step = steps[name]
    if step.traits.changes != "none":
        return Carried(step.traits.changes, name, step.traits.kinds)
    inputs = step.inputs
    if step.traits.role is Role.SIDE_ROWS or not step.traits.passes_on:
        inputs = ()
    carried = [carried_by(steps, before) for before in inputs]
    kinds = _INSERTS.union(*(each.kinds for each in carried))
    if isinstance(step, EachRowStep) and step.splits_updates and "updates" in kinds:
        kinds = (kinds - {"updates"}) | {"deletions"}
    first = next((each for each in carried if each.changes != "none"), Carried("none"))
    return first._replace(kinds=kinds)


def check_changes(steps: Mapping[str, Step], step: Step) -> None:
    """Check that a step can use the changes of its inputs.

    Args:
        steps: {name: step} of the steps before it.
        step: the step that is added.

    Raises:
        FlowError: it cannot, or its gate has a slack; names the step that makes them. Or it reads a
            changelog of a source that drops late rows.
    """
    if step.traits.role is Role.SIDE_ROWS:
        return
    if step.traits.changes in _WHOLE and step.traits.role is Role.EACH_ROW:
        _check_sources(steps, step)
    takes = step.traits.takes_changes
    of_each = (takes,) * len(step.inputs) if isinstance(takes, str) else takes
    kinds: dict[str, Carried] = {}
    for name, most in zip(step.inputs, of_each, strict=True):
        carried = carried_by(steps, name)
        if most != "any" and carried.changes not in ("none", most):
            raise FlowError(_refusal(step, carried))
        if carried.changes in _WHOLE and step.traits.has_gate:
            _check_in_time(steps, step, name, carried)
        if carried.changes != "none":
            kinds.setdefault(carried.changes, carried)
        if carried.changes == "upserts" and step.traits.role is Role.SINK:
            raise FlowError(_of_upserts(step, carried))
    if len(kinds) > 1:
        first, other, *_ = (carried.made_by for carried in kinds.values())
        raise FlowError(
            f"step {step.name!r} puts changes of two forms together, those of {first!r} and of "
            f"{other!r}: with the rows that updates replace, and without; give each its own sink"
        )


def late_changes_text(steps: Mapping[str, Step], step: Step) -> str:
    """Return the line of `explain` on changes that come late; "" without."""
    reads = any(carried_by(steps, name).changes in _WHOLE for name in step.inputs)
    drops = step.traits.has_gate and not step.traits.passes_on
    if not (reads and drops and _may_be_late(steps, step)):
        return ""
    if step.traits.takes_late:
        return (
            "note     a change that comes late (idle=, out_of_order=) counts when it comes: "
            "results lack it until then"
        )
    return (
        "note     a change that comes late (idle=, out_of_order=) is dropped, and counts as late: "
        "results lack it"
    )


def splitting(steps: Mapping[str, Step], step: Step) -> Step:
    """Return a step that splits updates, if it may drop halves of them."""
    if not (isinstance(step, EachRowStep) and step.traits.may_drop):
        return step
    carried = carried_by(steps, step.inputs[0])
    return replace(step, splits_updates=True) if carried.changes == "retractions" else step


def changes_text(steps: Mapping[str, Step], name: str) -> str:
    """Return the line of `explain` on the changes that leave a step; "" without."""
    changes, made_by, kinds = carried_by(steps, name)
    if changes == "none" or steps[name].traits.role is Role.SINK:
        return ""
    of = "" if made_by == name else f", of {made_by}"
    step = steps[name]
    splits = isinstance(step, EachRowStep) and step.splits_updates
    if splits and "updates" in carried_by(steps, step.inputs[0]).kinds:
        of += "; an update leaves as a deletion and an insertion"
    texts = {"inserts": "inserts", "updates": _UPDATES.get(changes, ""), "deletions": "deletions"}
    text = ", ".join(text for kind, text in texts.items() if kind in kinds)
    return f"changes  {_REVISIONS if changes == 'revisions' else text}{of}"


def _check_sources(steps: Mapping[str, Step], step: Step) -> None:
    """Check that no source drops rows of a changelog that come late.

    Raises:
        FlowError: one does; names it.
    """
    for above in _way_of(steps, step.inputs[0]):
        if not isinstance(above, SourceStep):
            continue
        order = above.source.reorder
        if not (order.refuses or order.passes_late):
            raise FlowError(
                f"step {step.name!r} reads changes, and source {above.name!r} drops rows that come "
                f"late ({order.text}): without a change results would be wrong from then on; write "
                "out_of_order=sw.order.k_slack('5s', late='pass') there, with which late changes "
                "count when they come, or out_of_order='error'"
            )


def _check_in_time(steps: Mapping[str, Step], step: Step, name: str, carried: Carried) -> None:
    """Check that no gate on the way of changes into a step has a slack.

    Raises:
        FlowError: one has; names it.
    """
    hurried: Step | None = step if step.traits.release != READY_ONLY else None
    for above in () if hurried else _way_of(steps, name):
        if above.traits.has_gate and above.traits.release != READY_ONLY:
            hurried = above
    if hurried is not None:
        where = "its gate" if hurried is step else f"the gate of {hurried.name!r} before it"
        release = hurried.traits.release
        way_out = f"write slack=None in {hurried.name!r}"
        if isinstance(release, ReleaseRule) and release.waits_in_full:
            way_out = "k_slack_chain has no other: read changes on the stream before it"
        raise FlowError(
            f"step {step.name!r} reads changes, of {carried.made_by!r}, and {where} does not wait "
            f"until they are ready ({release.text}): a change that came late would be lost, or out "
            f"of its place, and results be wrong; {way_out}"
        )


def _way_of(steps: Mapping[str, Step], name: str) -> Iterator[Step]:
    """Yield a step and those that its rows came through."""
    step = steps[name]
    yield step
    if step.traits.passes_on:
        for above in step.inputs:
            yield from _way_of(steps, above)


def _may_be_late(steps: Mapping[str, Step], step: Step) -> bool:
    return any(source.source.may_be_late for source in sources_upstream(steps, step.inputs))


def _refusal(step: Step, carried: Carried) -> str:
    by = repr(carried.made_by)
    if carried.changes == "revisions":
        return (
            f"step {step.name!r} is downstream of {by}, whose windows leave again with more rows, "
            "and would count each revision; write late='drop' there, without early= or with "
            "early_counts='new', or keep the highest revision in a sink"
        )
    if carried.changes == "upserts":
        return _of_upserts(step, carried)
    return (
        f"step {step.name!r} is downstream of {by}, whose rows change: it would count what has "
        f"been taken back; {step.traits.kind} has no use for changes, so put it before {by}, or "
        f"write {_USES}"
    )


def _of_upserts(step: Step, carried: Carried) -> str:
    return (
        f"step {step.name!r} is downstream of {carried.made_by!r}, whose updates come without the "
        "rows that they replace; write .to_table(…) by their key between"
    )
