"""Guard of a policy: its errors are counted, and its host goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.model.whose_code import let_ctrl_c_pass, raised_by_us, where_raised
from slackwater.runtime.nearest import choices
from slackwater.runtime.shown import in_words, shown


class StepSamples(Mapping[Subject, StageSample]):
    """Samples of steps that refuse wrong keys, as a dict would return None.

    A step that did not answer in the interval is missing, as in a dict.

    Args:
        samples: {step: sample of the step}.
        steps: all steps of the flow that have stages.
    """

    def __init__(self, samples: Mapping[Subject, StageSample], steps: Collection[Subject]) -> None:
        self._samples, self._steps = samples, steps

    def __getitem__(self, step: Subject) -> StageSample:
        """Return the sample of a step.

        Raises:
            KeyError: the step did not answer.
            SettingError: the key is not a step of the flow; names the nearest.
        """
        if step not in self._steps:
            raise SettingError(self._hint(step))
        return self._samples[step]

    def __iter__(self) -> Iterator[Subject]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def _hint(self, key: object) -> str:
        names = [step.name for step in self._steps]
        name = key.step if isinstance(key, Subject) else str(key)
        if name not in names:
            return (
                f"samples have no step {name!r}, as the flow has no such stage; "
                f"{choices(name, names)}; write sw.tuning.Subject(name)"
            )
        return (
            f"samples have no key {shown(key)}, as they are of whole steps; "
            f"write samples.get(sw.tuning.Subject({name!r}))"
        )


class GuardedPolicy:
    """Calls a policy, and passes on only slacks that can be set.

    Args:
        make: makes the policy; if it raises, that is an error too, and the job has no policy.
        graph: graph of the flow; the policy may set only gates whose rule follows from the
            deadline.

    Attributes:
        errors: how often the policy raised, or returned a command that cannot be set.
        last_error: the last error, in a line; of `status` only if it is the first.
        trace: the last error with its traceback, for a log; None once taken.
    """

    def __init__(self, make: Callable[[], Decider], graph: FlowGraph) -> None:
        parts = [part.subject for part in graph.parts]
        self._steps, self._gates = tuple(graph.inputs), frozenset(graph.tuned)
        self._subjects = frozenset([*self._steps, *parts])
        self._policy: Decider | None = None
        self.errors = 0
        self.last_error: str | None = None
        self._first_error: str | None = None
        self.trace: str | None = None
        try:
            self._policy = make()
        except BaseException as problem:
            let_ctrl_c_pass(problem)
            self._count(problem)

    @property
    def name(self) -> str | None:
        """Name of the policy; None if it could not be made."""
        return None if self._policy is None else name_of(self._policy)

    def begin(self) -> list[Command]:
        """Return the slacks to start with."""
        return [] if self._policy is None else self._commands(self._policy.begin)

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> list[Command]:
        """Return the commands at the end of a second."""
        policy = self._policy
        if policy is None:
            return []
        return self._commands(lambda: policy.decide(second, StepSamples(samples, self._steps)))

    def noted(self, report: TuningReport) -> TuningReport:
        """Return a report with the policy's name, status and errors."""
        return replace(
            report,
            policy=self.name or report.policy,
            status=self.status(),
            errors=report.errors + self.errors,
            last_error=self.errors_text() or report.last_error,
        )

    def errors_text(self) -> str | None:
        """Return the last error and the first; None if there was no error."""
        if self._first_error == self.last_error:
            return self.last_error
        return f"{self.last_error}; the first time: {self._first_error}"

    def status(self) -> dict[str, Any]:
        """Return the policy's status as plain JSON values; empty if it reports none."""
        status = getattr(self._policy, "status", None)
        if status is None:
            return {}
        try:
            facts = status()
            if not isinstance(facts, Mapping):
                raise SettingError(f"a policy's status() returns a dict, not {shown(facts)}")
            return {str(key): _plain(value) for key, value in facts.items()}
        except BaseException as problem:
            let_ctrl_c_pass(problem)
            last = self.last_error
            self._count(problem)
            self.last_error = last or self.last_error  # what `decide` raised says more
            return {}

    def take_trace(self) -> str | None:
        """Return the traceback of the last error, once."""
        trace, self.trace = self.trace, None
        return trace

    def _commands(self, ask: Callable[[], Sequence[Command]]) -> list[Command]:
        settable = []
        try:
            for setting in ask():
                try:
                    self._check(setting)
                except SettingError as problem:
                    self._count(problem)
                else:
                    settable.append(setting)
        except BaseException as problem:  # the job goes on after any error
            let_ctrl_c_pass(problem)
            self._count(problem)
        return settable

    def _check(self, setting: Command) -> None:
        if not isinstance(setting, SetRelease | Move | Shed | Warn):
            raise SettingError(f"a policy returns SetRelease, not {shown(setting)}")
        subject = setting.subject
        if not isinstance(subject, Subject):
            raise SettingError(
                f"{shown(subject)} names no step for {type(setting).__name__}; take a step of the "
                f"graph, or write sw.tuning.Subject({shown(subject)})"
            )
        if subject not in self._subjects:
            names = sorted(map(str, self._subjects))
            raise SettingError(
                f"the flow has no step {subject.name!r} for {shown(setting)}; "
                f"{choices(subject.name, names)}"
            )
        if not isinstance(setting, SetRelease):
            return  # its slot checks the command
        if subject not in self._gates:
            raise SettingError(
                f"step {subject.name!r} has no gate whose slack follows from the deadline; set "
                f"those of {', '.join(sorted(repr(gate.name) for gate in self._gates))}"
            )
        rules: list[object] = [setting.rule]
        for trial in setting.trials:
            if not isinstance(trial, Trial):
                raise SettingError(
                    f"step {subject.name!r}: {shown(trial)} is not a Trial; omit trials="
                )
            rules.append(trial.rule)
        for rule in rules:
            if not isinstance(rule, ReleaseRule):
                raise SettingError(
                    f"step {subject.name!r}: {shown(rule)} is not a ReleaseRule; write "
                    "sw.tuning.READY_ONLY, say"
                )

    def _count(self, problem: BaseException) -> None:
        self.errors += 1
        at, self.trace = where_raised(problem)
        words = in_words(problem).splitlines()[0]
        self.last_error = words if raised_by_us(problem) else f"{words}{at}"
        self._first_error = self._first_error or self.last_error


class GuardedPolicies:
    """Guard of several policies, as the control loop calls them.

    Args:
        make: makes each policy, in order of precedence; at least one.
        graph: graph of the flow.
    """

    def __init__(self, make: Sequence[Callable[[], Decider]], graph: FlowGraph) -> None:
        self._policies = [GuardedPolicy(make_policy, graph) for make_policy in make]
        errors = [policy for policy in self._policies if policy.errors]
        self._last_failed = errors[-1] if errors else None

    def begin(self) -> list[Wanted]:
        """Return each policy's commands to begin with."""
        return self._wanted(lambda policy: policy.begin())

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> list[Wanted]:
        """Return each policy's commands at the end of a second."""
        return self._wanted(lambda policy: policy.decide(second, samples))

    def _wanted(self, ask: Callable[[GuardedPolicy], Sequence[Command]]) -> list[Wanted]:
        wanted = []
        for name, policy in zip(self._names(), self._policies, strict=True):
            errors = policy.errors
            wanted.append(Wanted(name, ask(policy)))
            if policy.errors > errors:
                self._last_failed = policy
        return wanted

    def _names(self) -> list[str]:
        # Equal names are numbered.
        names = [policy.name or "" for policy in self._policies]
        return [
            name if names.count(name) == 1 else f"{name} {names[: at + 1].count(name)}"
            for at, name in enumerate(names)
        ]

    def noted(self, report: TuningReport) -> TuningReport:
        """Return a report with the policies' names, status and errors.

        With several policies, `policy` has all names, and `status` is {name: status}.
        """
        if len(self._policies) == 1:
            return self._policies[0].noted(report)
        names = [name or "one that could not be made" for name in self._names()]
        status = {name: policy.status() for name, policy in zip(names, self._policies, strict=True)}
        failed = self._last_failed or next(
            (policy for policy in self._policies if policy.errors), None
        )
        return replace(
            report,
            policy=", ".join(names),
            status={name: text for name, text in status.items() if text},
            errors=report.errors + sum(policy.errors for policy in self._policies),
            last_error=failed.errors_text() if failed else report.last_error,
        )

    def take_traces(self) -> list[str]:
        """Return the traceback of each policy's last error, once."""
        traces = [policy.take_trace() for policy in self._policies]
        return [trace for trace in traces if trace is not None]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # a NumPy number
        value = value.item()
    return value if isinstance(value, str | int | float | None) else str(value)
