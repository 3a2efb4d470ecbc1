"""Re-placement of a running job is worth it if the gain beats the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate
from slackwater.runtime.foresight.predicted.outlook import estimate_placed
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.shared_cores import SharedCores, with_shared_cores
from slackwater.runtime.measure import MovedStage, Replaced
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns, format_ns
from slackwater.runtime.placement.moved import why_it_stays
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["GAP", "MoveWorth", "move_worth", "worthwhile_moves"]

GAP = "250ms"
"""How long slots are taken to stand still for a move: more than the median of the benchmark
`replacing` with a small state, on a machine that had six times as much to do as it has cores."""


@dataclass(frozen=True, kw_only=True)
class MoveWorth:
    """What is predicted of a move.

    Attributes:
        now_s: the worst latency ahead where the stages are; inf: it grows without bound.
        then_s: the same where they would be.
        gap_s: how long the slots concerned stand still for it.
    """

    now_s: float
    then_s: float
    gap_s: float

    @property
    def gain_s(self) -> float:
        """Fall of the worst latency, seconds; below 0 it rises."""
        if self.then_s == float("inf"):
            return 0.0 if self.now_s == self.then_s else -self.then_s
        return self.now_s - self.then_s

    @property
    def is_worth(self) -> bool:
        """Whether the gain beats the cost: rows that come in the gap wait for its length more."""
        return self.gain_s > self.gap_s


def move_worth(now: LatencyEstimate, then: LatencyEstimate, *, gap_s: float) -> MoveWorth:
    """Return what a move is worth, by estimates for the same arrivals.

    The measure is the worst latency, Mace_WC's own: behind the gap there is at most its length of
    work more in every queue, so no row waits for longer than `then` says and the gap on top. A slot
    that falls behind for ever is worth any gap, if no other one does then; where both do, nothing
    is gained for good. So it is with a gate that holds rows for longer than is looked ahead.

    Args:
        now: as the flow is placed.
        then: as it would be.
        gap_s: how long the slots concerned stand still, >= 0.

    Raises:
        SettingError: gap_s is negative.
    """
    if gap_s < 0:
        raise SettingError(f"gap_s={gap_s:g} is how long slots stand still, and is at least 0")
    return MoveWorth(now_s=now.lasting_worst_s, then_s=then.lasting_worst_s, gap_s=gap_s)


def worthwhile_moves(
    made: Prediction,
    placement: Mapping[str, str],
    *,
    gap: Duration | None = None,
    places: Mapping[str, SlotPlace] | None = None,
    machines: Sequence[SharedCores] | None = None,
) -> dict[str, str] | Replaced:
    """Return {stage: slot} of the stages that a prediction has elsewhere, and that can move.

    Both placements are weighed with what made the prediction: links, gates and all.

    Args:
        made: of the flow that runs.
        placement: {stage: slot}, as it runs.
        gap: how long slots are taken to stand still for it; None: `GAP`.
        places: {slot: where it is}, of those that the prediction may not know.
        machines: what others than this flow take of them now; None: as it was predicted with.

    Returns:
        That; or why the job stays as it is.

    Raises:
        SettingError: the prediction is of another version of the flow, or `gap` is no length of
            time.
    """
    wanted = made.plan.slots
    if wanted.keys() != placement.keys():
        odd = ", ".join(sorted(wanted.keys() ^ placement.keys()))
        raise SettingError(
            f"the prediction is of another version of flow {made.plan.flow!r}: they differ in "
            f"{odd}; predict the flow as it was submitted"
        )
    gap_s = duration_ns(GAP if gap is None else gap, what="gap") / NS_PER_SECOND
    free = [stage.name for stage in made.plan.stages if why_it_stays(stage) is None]
    moves = {name: wanted[name] for name in free if wanted[name] != placement[name]}
    if not moves:
        return Replaced(at_s=0.0, problem="all that can move is there already")
    if machines is not None:
        made = replace(made, outlook=replace(made.outlook, machines=tuple(machines)))
    now = _estimate(made, placement, places or {})
    then = _estimate(made, {**placement, **moves}, places or {})
    found = move_worth(now, then, gap_s=gap_s)
    if found.is_worth:
        return moves
    moved = [MovedStage(name, placement[name], slot) for name, slot in moves.items()]
    return Replaced(at_s=0.0, moves=moved, problem=_why(found))


def _estimate(
    made: Prediction, placement: Mapping[str, str], places: Mapping[str, SlotPlace]
) -> LatencyEstimate:
    """Return what the prediction would have been for another placement."""
    known = {**made.outlook.places, **made.plan.places, **places}
    slots = dict.fromkeys(placement.values())
    there = {name: known.get(name, SlotPlace(name, name, 1)) for name in slots}
    plan = replace(made.plan, slots=dict(placement), places=there)
    found = estimate_placed(plan, made.sample, made.graph, made.outlook)
    machines = made.outlook.machines
    return with_shared_cores(found.latency, made.graph, found.work, placement, machines)


def _why(found: MoveWorth) -> str:
    return (
        f"it is not worth it: the worst latency ahead is {_time(found.now_s)} as the flow runs, "
        f"{_time(found.then_s)} then, and the slots concerned would stand still for "
        f"{_time(found.gap_s)}"
    )


def _time(seconds: float) -> str:
    return "without bound" if seconds == float("inf") else format_ns(round(seconds * 1e9))
