"""What a cluster and the simulator share: flows are placed on their nodes, and explained."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from runtime.flow.dataflow import Dataflow
from runtime.measure.deadline import unpaced
from runtime.placement.place import place
from runtime.placement.placement_text import placement_lines
from runtime.plan.flow_fingerprints import flow_fingerprints
from runtime.plan.plan import Plan, plan_stages
from runtime.plan.slots import SlotPlace


class FlowHost(ABC):
    """Named nodes that flows are placed on; a context manager that closes what they hold.

    Attributes:
        nodes: their names.
        slots: what they offer: a slot for each core.
    """

    nodes: list[str]
    slots: tuple[SlotPlace, ...]
    _free: Mapping[str, int] | None = None  # {node: how many of its slots have a free CPU}

    def plan(self, flow: Dataflow, *, placement: Mapping[str, str] | None = None) -> Plan:
        """Return the stages of a flow and the slot of each, without running it."""
        placed = place(
            flow.name,
            plan_stages(flow.graph),
            self.slots,
            placement=placement,
            deadline_ns=flow.deadline_ns,
            free=self._free,
        )
        return replace(placed, marks=flow_fingerprints(flow.steps))

    def explain(self, flow: Dataflow, *, placement: Mapping[str, str] | None = None) -> str:
        """Return the flow's graph, where each stage will run, and why some share a slot."""
        plan = self.plan(flow, placement=placement)
        return "\n".join([flow.explain(), "", "placement", *placement_lines(plan)])

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


def tell(plan: Plan) -> None:
    """Say at submit what a user should know before the job runs; the report says it, too."""
    if (note := unpaced(plan)) is not None:
        logging.getLogger("slackwater").warning("%s: %s", plan.flow, note)
