"""What a cluster and the simulator share: flows are placed on their nodes, and explained."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from runtime.config import Limits, Tuning
from runtime.flow.dataflow import Dataflow
from runtime.model import Duration
from runtime.placement.placement_text import placement_lines
from runtime.plan.plan import Plan
from runtime.plan.slots import SlotPlace
from runtime.prepare import admit, prepare
from runtime.tune import HOP_NS

if TYPE_CHECKING:
    from runtime.estimate.rates import Rate
    from slackwater.prediction import Prediction
    from slackwater.sampling import FlowSample


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
    ) -> Plan:
        """Return the stages of a flow, the slot of each, and its settings, without running it.

        Its `verdict` says whether it may run. Arguments and errors are those of `submit`.
        """
        return prepare(
            flow,
            self.slots,
            placement=placement,
            free=self._free,
            limits=limits,
            tuning=tuning,
            hop_ns=self._hop_ns,
        )

    def explain(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
    ) -> str:
        """Return the flow's graph, where each stage will run, and why some share a slot.

        Where `submit` would refuse it, the last lines say why.
        """
        plan = self.plan(flow, placement=placement, limits=limits, tuning=tuning)
        lines = [flow.explain(), "", "placement", *placement_lines(plan)]
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
        horizon: Duration = "60s",
        width: Duration = "100ms",
        speed: float | None = None,
        seed: int = 0,
    ) -> Prediction:
        """Return what the latency of a flow will be here, and which slot is the bottleneck.

        Nothing is run on the nodes: the first rows of each source go through the flow in this
        process, and no sink is called. Stages that `placement` leaves open are placed by the simple
        rule, or as a search for the least latency finds, whichever is better; give what it says
        (`.plan.slots`) as the placement of the job. Source: [mace].

        Args:
            flow: as it will be submitted.
            rates: {source: events a second, an `OnOff` model, or a trace of counts}, or one for
                all sources together.
            sample: how many rows of each source to sample, or a sample taken before.
            placement: {stage: slot or node} for some stages, or {"*": slot or node} for all.
            limits: those it will be submitted with.
            horizon: how long to look ahead.
            width: of a subinterval, w of [mace].
            speed: event time goes so many times faster than the clock; 1 where events happen as
                they come, so that higher rates mean more partners for each row of a join. None: as
                the sources are paced; a source that is not is as dense as in its sample.
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

        plan = self.plan(flow, placement=placement, limits=limits)
        if isinstance(sample, int):
            sample = sample_flow(flow, rows=sample, limits=limits)
        slots = [slot.name for slot in self.slots]
        predicted = partial(
            predict,
            sample=sample,
            rates=rates,
            slots=slots,
            horizon=horizon,
            width=width,
            hop_s=self._hop_ns / 1e9,
            speed=speed,
            seed=seed,
        )
        rule = predicted(plan)
        if len(slots) == 1 or not rule.has_backlog:
            return rule
        found = searched_placement(rule, slots, seed=seed)
        if found == dict(plan.slots):
            return rule
        return better_of(rule, predicted(self.plan(flow, placement=found, limits=limits)))

    def _admitted(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None,
        limits: Limits | None,
        tuning: Tuning | None,
    ) -> Plan:
        """Return the plan of a flow that is about to run; say what its user should know."""
        plan = admit(self.plan(flow, placement=placement, limits=limits, tuning=tuning))
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
