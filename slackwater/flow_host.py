"""What a cluster and the simulator share: flows are placed on their nodes, and explained."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from runtime.config import Limits, Tuning
from runtime.flow.dataflow import Dataflow
from runtime.model import Duration
from runtime.placement.placement_text import placement_lines
from runtime.plan.plan import Plan
from runtime.plan.slots import SlotPlace
from runtime.prepare import admit, prepare
from runtime.tune import HOP_NS
from slackwater.admission import (
    Admission,
    RunningFlow,
    admitted_plan,
    broken_by,
    check_admission,
)

if TYPE_CHECKING:
    from runtime.estimate.rates import Rate
    from runtime.estimate.shared_cores import SharedCores
    from slackwater.plan_choice import Ahead, PlanChoice
    from slackwater.prediction import Prediction
    from slackwater.sampling import FlowSample

NOT_PREDICTED = (
    "placed by the simple rule: no rates are known, so nothing is predicted; with rates= (on the "
    "command line --rate) latency, bottleneck and the best placement are"
)


class FlowHost(ABC):
    """Named nodes that flows are placed on; a context manager that closes what they hold.

    Attributes:
        nodes: their names.
        slots: what they offer: a slot for each core.
    """

    nodes: list[str]
    slots: tuple[SlotPlace, ...]
    _free: Mapping[str, int] | None = None  # {node: how many of its slots have a free CPU}
    _hop_ns: int = HOP_NS  # what a message between two slots takes at least

    def plan(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        rates: Mapping[str, Rate] | Rate | None = None,
        sample: int | FlowSample = 1_000,
        admission: Admission | None = None,
    ) -> Plan:
        """Return the stages of a flow, the slot of each, and its settings, without running it.

        Its `verdict` says whether it may run. Arguments and errors are those of `submit`.
        """
        check_admission(admission, rates)
        if rates is None:
            return self._placed(flow, placement=placement, limits=limits, tuning=tuning)
        made = self.predict(
            flow, rates, sample=sample, placement=placement, limits=limits, tuning=tuning
        )
        return admitted_plan(made, admission)

    def explain(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        rates: Mapping[str, Rate] | Rate | None = None,
        sample: int = 1_000,
    ) -> str:
        """Return the flow's graph, where each stage will run, and why some share a slot.

        With `rates`, as of `predict`, also what its latency will be, the bottleneck, what would
        relieve it, and which other plans there are. Where `submit` would refuse it, the last lines
        say why.
        """
        if rates is None:
            plan = self._placed(flow, placement=placement, limits=limits, tuning=tuning)
            said = NOT_PREDICTED
        else:
            by: Ahead = {"placement": placement, "limits": limits, "tuning": tuning}
            choice = self.choose_plan(flow, rates, sample=sample, **by)
            made = choice.written.prediction
            plan, said = made.plan, f"{made.text()}\n{choice.text()}"
            refused = admitted_plan(made, "reject").verdict.refusal
            said += "" if refused is None else f"\n\nwith admission='reject': {refused}"
        lines = [flow.explain(), "", "placement", *placement_lines(plan), "", said]
        if plan.verdict.refusal is not None:
            lines += ["", f"will be refused: {plan.verdict.refusal}"]
        return "\n".join(lines)

    def predict(  # noqa: PLR0913 - each by name
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate,
        *,
        sample: int | FlowSample = 1_000,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        horizon: Duration = "60s",
        width: Duration = "100ms",
        seed: int = 0,
    ) -> Prediction:
        """Return what the latency of a flow will be here, and which slot is the bottleneck.

        Nothing is run on the nodes: the first rows of each source go through the flow in this
        process, and no sink is called. Stages that `placement` leaves open are placed by the simple
        rule, or as a search for the least latency finds, whichever is better; `submit` with the
        same rates places them so. Source: [mace].

        Args:
            flow: as it will be submitted.
            rates: {source: events a second, an `OnOff` model, or a trace of counts}, or one for
                all sources together.
            sample: how many rows of each source to sample, or a sample taken before.
            placement: {stage: slot or node} for some stages, or {"*": slot or node} for all.
            limits: those it will be submitted with.
            tuning: likewise.
            horizon: how long to look ahead.
            width: of a subinterval, w of [mace].
            seed: of what models of rates draw.

        Raises:
            FlowError: the flow or the placement is wrong.
            SettingError: a source has no rate, or is live; or the sample gives no result.
        """
        from slackwater.prediction import (  # noqa: PLC0415 (only who predicts needs it)
            better_of,
            predict,
            searched_placement,
        )
        from slackwater.sampling import sample_flow  # noqa: PLC0415

        if isinstance(sample, int):
            sample = sample_flow(flow, rows=sample, limits=limits)
        running = self._running()
        placed = partial(self._placed, flow, limits=limits, tuning=tuning)
        plan = placed(placement=placement)
        slots = [slot.name for slot in self.slots]
        predicted = partial(
            predict,
            sample=sample,
            rates=rates,
            slots=slots,
            horizon=horizon,
            width=width,
            hop_s=self._hop_ns / 1e9,
            machines=self._machines(running),
            seed=seed,
        )
        made = predicted(plan)
        if len(slots) > 1 and made.has_backlog:
            found = searched_placement(made, slots, seed=seed)
            if found != dict(plan.slots):
                made = better_of(made, predicted(placed(placement=found)))
        return replace(made, breaks=tuple(broken_by(made, running)))

    def choose_plan(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate,
        *,
        sample: int = 1_000,
        **ahead: Unpack[Ahead],
    ) -> PlanChoice:
        """Return which plan of a flow has the least latency here, of those with the same results.

        What it says (`.chosen.flow`) may be submitted in the flow's place; nothing does so by
        itself. Arguments and errors are those of `predict`. See `slackwater.plan_choice`.
        """
        from slackwater.plan_choice import choose_plan  # noqa: PLC0415 (as above)

        return choose_plan(self, flow, rates, sample=sample, **ahead)

    def _placed(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None,
        limits: Limits | None,
        tuning: Tuning | None,
    ) -> Plan:
        """Return the plan of a flow by the simple rule, but for what `placement` says."""
        return prepare(
            flow,
            self.slots,
            placement=placement,
            free=self._free,
            limits=limits,
            tuning=tuning,
            hop_ns=self._hop_ns,
        )

    def _running(self) -> list[RunningFlow]:
        """Return the flows that run here, as far as it was predicted what they need."""
        return []

    def _machines(self, running: Sequence[RunningFlow]) -> list[SharedCores]:
        """Return the machines that may have fewer cores than slots."""
        del running
        return []

    def _admitted(self, plan: Plan) -> Plan:
        """Return the plan of a flow that is about to run; say what its user should know."""
        plan = admit(plan)
        for note in plan.verdict.notes:
            logging.getLogger("slackwater").warning("%s: %s", plan.flow, note)
        return plan

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
