"""Choice of the number of replicas, by the predictions with several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.predicted.replica_worth import ReplicaTable, ReplicaWorth
from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.step import GatedStep, Step

__all__ = ["auto_steps", "best_prediction", "divisible_steps", "numbers_to_try", "resolved"]


def auto_steps(flow: Dataflow, *, owns_keys: bool = True) -> list[str]:
    """Return the steps with `replicas="auto"`.

    Args:
        flow: flow whose steps may have replicas.
        owns_keys: whether their replicas have a gate each; else they share one.
    """
    return [
        name
        for name, step in flow.steps.items()
        if isinstance(step, GatedStep) and step.is_auto and step.traits.owns_keys == owns_keys
    ]


def divisible_steps(flow: Dataflow) -> list[str]:
    """Return the steps that may have replicas with a gate each, whatever is written."""
    return [name for name, step in flow.steps.items() if _is_divisible(step)]


def _is_divisible(step: Step) -> bool:
    if not isinstance(step, GatedStep) or "replicas" not in vars(step):
        return False
    if not all(step.traits.port_keys):
        return False  # no rows by key
    return step.with_replicas(2).traits.owns_keys


def numbers_to_try(slots: int, also: Iterable[int] = ()) -> list[int]:
    """Return the numbers of replicas to predict: powers of 2, and one for each slot.

    Args:
        slots: number of slots, at least 1.
        also: other numbers, such as those that are written.
    """
    most = min(slots, KEY_GROUPS)
    powers = [2**n for n in range(most.bit_length()) if 2**n < most]
    return sorted({*powers, most, *also})


def best_prediction(
    numbers: Sequence[int],
    ask: Callable[[int], Prediction],
    *,
    steps: Sequence[str],
    is_auto: bool,
    may_lack: tuple[type[Exception], ...] = (),
) -> Prediction:
    """Return the prediction with the best number of replicas, and the worth of each.

    Args:
        numbers: numbers of replicas, ascending.
        ask: predicts the flow with a number of replicas.
        steps: the steps with this number.
        is_auto: whether `replicas="auto"` is written.
        may_lack: errors by which a number is omitted: a placement or costs of more replicas, or no
            history of so few.

    Raises:
        FlowError, SettingError: no number can be predicted; the error of the first.
    """
    each: dict[int, Prediction] = {}
    problems: list[Exception] = []
    for number in numbers:
        try:
            each[number] = ask(number)
        except may_lack as problem:
            problems.append(problem)
    if not each:
        raise problems[0]
    rows = tuple(_worth(number, made) for number, made in each.items())
    table = ReplicaTable(steps=tuple(steps), rows=rows, is_auto=is_auto)
    return replace(each[table.best.replicas], replicas=table)


def _worth(number: int, made: Prediction) -> ReplicaWorth:
    most = made.estimate.bottleneck
    return ReplicaWorth(
        replicas=number,
        worst_s=made.compared_s,
        keeps_deadline=made.keeps_deadline,
        limit=most.name,
        load=most.load,
        runs=tuple(most.operators),
        most=sum(made.rates.values()) * made.sustainable,
    )


def resolved(flow: Dataflow, plan: Plan) -> Dataflow:
    """Return a flow with the numbers of replicas of a plan in place of "auto"."""
    counts = {stage.subject.step: stage.replica.of for stage in plan.stages if stage.replica}
    return flow.with_steps(
        step.with_replicas(counts.get(name, 1))
        if isinstance(step, GatedStep) and step.is_auto
        else step
        for name, step in flow.steps.items()
    )
