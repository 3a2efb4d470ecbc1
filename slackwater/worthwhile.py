"""Re-placement of a running job is worth it if the gain beats the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.outlook import estimate_placed
from slackwater.prediction import Prediction
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate, MoveWorth, move_worth
from slackwater.runtime.foresight.shared_cores import SharedCores, with_shared_cores
from slackwater.runtime.measure import MovedStage, Replaced
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns, format_ns
from slackwater.runtime.placement.moved import why_it_stays
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["GAP", "worthwhile_moves"]

GAP = "250ms"
"""How long slots are taken to stand still for a move: more than the median of the benchmark
`replacing` with a small state, on a machine that had six times as much to do as it has cores."""


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
