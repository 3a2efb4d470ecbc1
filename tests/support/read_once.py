"""Inputs that give each block once, also when they are opened again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

import slackwater as sw
from slackwater.actors.checkpoints.spool import SpoolName
from slackwater.actors.slot.spooled import SpooledInput
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.sources.spec import Input


@dataclass(eq=False)
class ReadOnce:
    """Gives what another input has, each block to whoever asks first."""

    inner: Input
    is_history: bool = False
    opened: int = 0
    replay: ClassVar[str] = "none"
    blocks_stay: ClassVar[bool] = True
    left: list[Any] = field(default_factory=list)

    def describe(self) -> str:
        return "blocks that are read once"

    def schema(self) -> pa.Schema:
        return self.inner.schema()

    def open(self) -> Any:
        if not self.opened:
            reader = self.inner.open()
            while not self.left or self.left[-1] is not sw.connectors.END_OF_INPUT:
                self.left.append(reader.poll())
            reader.close()
        self.opened += 1
        return self

    def poll(self) -> Any:
        return self.left.pop(0) if self.left else sw.connectors.END_OF_INPUT

    def close(self) -> None:
        """Keep what nobody has asked for."""


def spooling(plan: Plan, folder: Path) -> tuple[Plan, list[ReadOnce]]:
    """Return a plan whose inputs are read once, and spooled; and these inputs."""
    inputs: list[ReadOnce] = []

    def spooled(stage: Stage) -> Stage:
        step = stage.step
        if not isinstance(step, SourceStep):
            return stage
        inputs.append(ReadOnce(step.source.input, step.source.is_history))
        name = SpoolName(folder, plan.flow, stage.name)
        own = SpooledInput(name, inputs[-1], plan.limits)
        return replace(stage, step=replace(step, source=replace(step.source, input=own)))

    return replace(plan, stages=tuple(map(spooled, plan.stages))), inputs
