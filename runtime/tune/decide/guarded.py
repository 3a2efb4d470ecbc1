"""A policy that cannot take its host down: what it does wrong is counted, and slacks stay."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slackwater.runtime.control.commands import Command, Move, SetRelease, Shed, Warn
from slackwater.runtime.control.deciders import Wanted
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import Decider, name_of
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.whose_code import in_words, let_ctrl_c_pass


class GuardedPolicy:
    """Calls a policy, and hands on only slacks that can be set.

    Args:
        make: makes the policy; what that raises counts too, and then there is none.
        graph: of the flow; only gates whose rule follows from the deadline are for it to set.

    Attributes:
        errors: how often it raised, or asked for what cannot be set.
        last_error: the last time, in a line.
        trace: the same with its traceback, for a log; None once taken away.
    """

    def __init__(self, make: Callable[[], Decider], graph: FlowGraph) -> None:
        self._stages, self._gates = frozenset(graph.inputs), frozenset(graph.tuned)
        self._policy: Decider | None = None
        self.errors = 0
        self.last_error: str | None = None
        self.trace: str | None = None
        try:
            self._policy = make()
        except BaseException as problem:
            let_ctrl_c_pass(problem)
            self._count(problem)

    @property
    def name(self) -> str | None:
        """What the policy calls itself; None: there is none."""
        return None if self._policy is None else name_of(self._policy)

    def begin(self) -> list[Command]:
        """Return the slacks to start with."""
        return [] if self._policy is None else self._asked(self._policy.begin)

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> list[Command]:
        """Return what to change now that a second is over."""
        policy = self._policy
        return [] if policy is None else self._asked(lambda: policy.decide(second, samples))

    def noted(self, report: TuningReport) -> TuningReport:
        """Return a report with what the policy is, says of itself, and did wrong."""
        return replace(
            report,
            policy=self.name or report.policy,
            status=self.status(),
            errors=report.errors + self.errors,
            last_error=self.last_error or report.last_error,
        )

    def status(self) -> dict[str, Any]:
        """Return what the policy says of itself, as plain JSON values; nothing, if it does not."""
        status = getattr(self._policy, "status", None)
        if status is None:
            return {}
        try:
            return {str(key): _plain(value) for key, value in dict(status()).items()}
        except BaseException as problem:
            let_ctrl_c_pass(problem)
            self._count(problem)
            return {}

    def take_trace(self) -> str | None:
        """Return the traceback of what went wrong last, once."""
        trace, self.trace = self.trace, None
        return trace

    def _asked(self, ask: Callable[[], Sequence[Command]]) -> list[Command]:
        settable = []
        try:
            for setting in ask():
                try:
                    self._check(setting)
                except SettingError as problem:
                    self._count(problem)
                else:
                    settable.append(setting)
        except BaseException as problem:  # whatever it is, the job goes on
            let_ctrl_c_pass(problem)
            self._count(problem)
        return settable

    def _check(self, setting: Command) -> None:
        if not isinstance(setting, SetRelease | Move | Shed | Warn):
            raise SettingError(f"a policy returns SetRelease, not {setting!r}")
        if setting.stage not in self._stages:
            raise SettingError(f"the flow has no stage {setting.stage!r} for {setting!r}")
        if not isinstance(setting, SetRelease):
            return  # a slot says whether it can do that
        if setting.stage not in self._gates:
            raise SettingError(
                f"stage {setting.stage!r} has no gate whose slack follows from the deadline"
            )
        rules: list[object] = [setting.rule]
        for trial in setting.trials:
            if not isinstance(trial, Trial):
                raise SettingError(f"stage {setting.stage!r}: {trial!r} is no Trial")
            rules.append(trial.rule)
        for rule in rules:
            if not isinstance(rule, ReleaseRule):
                raise SettingError(f"stage {setting.stage!r}: {rule!r} is no ReleaseRule")

    def _count(self, problem: BaseException) -> None:
        self.errors += 1
        self.last_error = in_words(problem).splitlines()[0]
        self.trace = "".join(traceback.format_exception(problem))


class GuardedPolicies:
    """Several policies, each guarded, as the control loop asks them.

    Args:
        make: makes each, the one whose word prevails first; at least one.
        graph: of the flow.
    """

    def __init__(self, make: Sequence[Callable[[], Decider]], graph: FlowGraph) -> None:
        self._each = [GuardedPolicy(one, graph) for one in make]
        errors = [one.last_error for one in self._each if one.last_error is not None]
        self._last_error = errors[-1] if errors else None

    def begin(self) -> list[Wanted]:
        """Return what each wants to begin with."""
        return self._wanted(lambda one: one.begin())

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> list[Wanted]:
        """Return what each wants to change now that a second is over."""
        return self._wanted(lambda one: one.decide(second, samples))

    def _wanted(self, asked: Callable[[GuardedPolicy], Sequence[Command]]) -> list[Wanted]:
        wanted = []
        for name, one in zip(self._names(), self._each, strict=True):
            errors = one.errors
            wanted.append(Wanted(name, asked(one)))
            if one.errors > errors:
                self._last_error = one.last_error
        return wanted

    def _names(self) -> list[str]:
        """Return what each is called; those of one name are numbered, to be told apart."""
        names = [one.name or "" for one in self._each]
        return [
            name if names.count(name) == 1 else f"{name} {names[: at + 1].count(name)}"
            for at, name in enumerate(names)
        ]

    def noted(self, report: TuningReport) -> TuningReport:
        """Return a report with what they are, say of themselves, and did wrong.

        Of several, `policy` has all names, and `status` {name: what it says}.
        """
        if len(self._each) == 1:
            return self._each[0].noted(report)
        names = [name or "one that could not be made" for name in self._names()]
        status = {name: one.status() for name, one in zip(names, self._each, strict=True)}
        return replace(
            report,
            policy=", ".join(names),
            status={name: said for name, said in status.items() if said},
            errors=report.errors + sum(one.errors for one in self._each),
            last_error=self._last_error or report.last_error,
        )

    def take_traces(self) -> list[str]:
        """Return the tracebacks of what went wrong, once."""
        traces = [one.take_trace() for one in self._each]
        return [trace for trace in traces if trace is not None]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "item"):  # a NumPy number
        value = value.item()
    return value if isinstance(value, str | int | float | None) else str(value)
