"""A FlowBuilder holds the steps of an unfinished flow, and what the next step needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.runtime.errors import DuplicateName, FlowError
from slackwater.runtime.model import READY_ONLY, Release
from slackwater.runtime.operators.ground.keep import default_keep
from slackwater.runtime.other_names import SaysOurName
from slackwater.runtime.plan.changes import check_changes, splitting
from slackwater.runtime.plan.flow_fingerprints import check_sinks
from slackwater.runtime.plan.graph import order_steps
from slackwater.runtime.plan.slack import AsFlow, Slack, rule_of
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SinkStep
from slackwater.runtime.plan.traits import Keep


class FlowBuilder(SaysOurName):
    """FlowBuilder has the steps of a flow; the flow's streams add steps to it.

    Attributes:
        name: the flow's name in reports.
        release: the rule of every gate without a slack of its own.
        keep: the `keep` of every join without one of its own; None: as its inputs promise.

    Raises:
        FlowError: no name of printable text.
    """

    _called, _place = "a dataflow", "flow"
    _inner = frozenset(
        (
            *("add", "graph", "keep_of", "name_for", "needed_columns", "put", "release_of"),
            *("steps", "with_steps", "division", "with_division"),
        )
    )

    def __init__(self, name: str) -> None:
        self.name = _checked_name(name, "a dataflow")
        self.release: Release = READY_ONLY
        self.keep: Keep | None = None
        self._steps: list[Step] = []

    def __repr__(self) -> str:
        return f"<Dataflow {self.name!r}: {', '.join(step.name for step in self._steps)}>"

    @property
    def steps(self) -> dict[str, Step]:
        """{name: step}, each after its inputs."""
        return order_steps(self._steps)

    def put(self, step: Step) -> None:
        """Add a step whose inputs are there.

        Raises:
            FlowError: a sink would destroy what a source reads, or cannot do what its options say;
                or the step has no use for the changes of an input.
        """
        steps = self.steps
        if isinstance(step, SinkStep):
            check_sinks({**steps, step.name: step})
        check_changes(steps, step)
        self._steps.append(splitting(steps, step))

    def name_for(self, kind: str, name: str | None) -> str:
        """Return the name of a new step: the user's, or the first free `kind-number`.

        Raises:
            DuplicateName: another step has it.
        """
        names = {step.name for step in self._steps}
        if name is None:
            return next(
                free
                for number in range(1, len(names) + 2)
                if (free := f"{kind}-{number}") not in names
            )
        if _checked_name(name, f"a {kind}") in names:
            raise DuplicateName(
                f"dataflow {self.name!r} has a step {name!r} already; each needs its own name, "
                f"sinks too: {name}-2, say"
            )
        return name

    def release_of(self, slack: Slack, *, step: str) -> Release:
        """Return the release rule of a step's gate.

        Raises:
            SettingError: not a length of time.
        """
        return self.release if isinstance(slack, AsFlow) else rule_of(slack, who=f"step {step!r}")

    def keep_of(self, keep: Keep | None, *, inputs: Sequence[str]) -> Keep:
        """Return `keep` of a join of these inputs."""
        return keep or self.keep or default_keep({step.name: step for step in self._steps}, inputs)


def _checked_name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise FlowError(f"{what} cannot be named {name!r}; write a name of printable text")
    return name
