"""Re-placement of a running job is worth it if the gain beats the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate
from slackwater.runtime.foresight.predicted.outlook import estimate_placed
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.shared_cores import SharedCores, with_shared_cores
from slackwater.runtime.measure.replaced import MovedStage, Replaced
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns, format_ns
from slackwater.runtime.placement.moved import why_it_stays
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["GAP", "MoveWorth", "move_worth", "worthwhile_moves"]

GAP = "250ms"
"""Assumed gap of a move: more than the median measured with a small state, on a machine that has
six times as much work as cores."""


@dataclass(frozen=True, kw_only=True)
class MoveWorth:
    """Prediction of a move.

    Attributes:
        now_s: worst latency ahead without the move; inf: it grows without bound.
        then_s: the same with the move.
        gap_s: time for which the slots concerned stand still.
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
        """Whether the gain beats the cost: rows in the gap wait for its length."""
        return self.gain_s > self.gap_s


def move_worth(now: LatencyEstimate, then: LatencyEstimate, *, gap_s: float) -> MoveWorth:
    """Return the worth of a move, by two estimates for the same arrivals.

    The measure is the worst latency, Mace_WC. After the gap every queue has at most its length of
    work more, so no row waits longer than `then` plus the gap. An end to a backlog that grows for
    ever is worth any gap; if backlogs grow with both placements, there is no gain. The same holds
    for a gate that holds rows longer than the time ahead.

    Args:
        now: estimate of the present placement.
        then: estimate after the move.
        gap_s: time for which the slots concerned stand still, >= 0.

    Raises:
        SettingError: gap_s is negative.
    """
    if gap_s < 0:
        raise SettingError(f"gap_s={gap_s:g} must be 0 or more: slots stand still so long")
    return MoveWorth(now_s=now.lasting_worst_s, then_s=then.lasting_worst_s, gap_s=gap_s)


def worthwhile_moves(
    made: Prediction,
    placement: Mapping[str, str],
    *,
    gap: Duration | None = None,
    places: Mapping[str, SlotPlace] | None = None,
    machines: Sequence[SharedCores] | None = None,
) -> dict[str, str] | Replaced:
    """Return {stage: slot} of the moves that a prediction makes worthwhile.

    Both placements are estimated like the prediction, with links and gates.

    Args:
        made: prediction of the flow that runs.
        placement: {stage: slot}, as it runs.
        gap: assumed time for which slots stand still; None if it is `GAP`.
        places: {slot: its place}, of slots that the prediction may not know.
        machines: machines with the present load of other flows; None if they are those of the
            prediction.

    Returns:
        The moves; or the reason why the job stays as it is.

    Raises:
        SettingError: the prediction is of another version of the flow, or `gap` is not a length of
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
    worth = move_worth(now, then, gap_s=gap_s)
    if worth.is_worth:
        return moves
    moved = [MovedStage(name, placement[name], slot) for name, slot in moves.items()]
    return Replaced(at_s=0.0, moves=moved, problem=_why(worth))


def _estimate(
    made: Prediction, placement: Mapping[str, str], places: Mapping[str, SlotPlace]
) -> LatencyEstimate:
    """Return the estimate of a prediction for another placement."""
    known = {**made.outlook.places, **made.plan.places, **places}
    slots = dict.fromkeys(placement.values())
    used = {name: known.get(name, SlotPlace(name, name, 1)) for name in slots}
    plan = replace(made.plan, slots=dict(placement), places=used)
    placed = estimate_placed(plan, made.sample, made.graph, made.outlook)
    machines = made.outlook.machines
    return with_shared_cores(placed.latency, made.graph, placed.work, placement, machines)


def _why(worth: MoveWorth) -> str:
    return (
        f"it is not worth it: the worst latency ahead is {_time(worth.now_s)} as the flow runs, "
        f"{_time(worth.then_s)} then, and the slots concerned would stand still for "
        f"{_time(worth.gap_s)}"
    )


def _time(seconds: float) -> str:
    return "without bound" if seconds == float("inf") else format_ns(round(seconds * 1e9))
