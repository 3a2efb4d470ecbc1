"""A policy that cannot take its host down: what it does wrong is counted, and slacks stay."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from runtime.errors import SettingError
from runtime.measure.samples import StageSample
from runtime.measure.tuning import TuningReport
from runtime.tune.record.contract import SetSlack, SlackPolicy

MOST_NS = 10**18
"""The longest wait that can be set, 31 years: it is subtracted from event times of 64 bits."""


class GuardedPolicy:
    """Calls a policy, and hands on only slacks that can be set.

    Args:
        make: makes the policy; what that raises counts too, and then there is none.
        gates: the stages whose slack follows from the deadline; others are not for it to set.

    Attributes:
        errors: how often it raised, or asked for what cannot be set.
        last_error: the last time, in a line.
        trace: the same with its traceback, for a log; None once taken away.
    """

    def __init__(self, make: Callable[[], SlackPolicy], gates: Iterable[str]) -> None:
        self._gates = frozenset(gates)
        self._policy: SlackPolicy | None = None
        self.errors = 0
        self.last_error: str | None = None
        self.trace: str | None = None
        try:
            self._policy = make()
        except Exception as problem:
            self._count(problem)

    @property
    def name(self) -> str | None:
        """What the policy calls itself; None: there is none."""
        return None if self._policy is None else self._policy.name

    def begin(self) -> list[SetSlack]:
        """Return the slacks to start with."""
        return [] if self._policy is None else self._asked(self._policy.begin)

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> list[SetSlack]:
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
        except Exception as problem:
            self._count(problem)
            return {}

    def _asked(self, ask: Callable[[], Sequence[SetSlack]]) -> list[SetSlack]:
        settable = []
        try:
            for setting in ask():
                try:
                    self._check(setting)
                except SettingError as problem:
                    self._count(problem)
                else:
                    settable.append(setting)
        except Exception as problem:  # whatever it is, the job goes on
            self._count(problem)
        return settable

    def _check(self, setting: SetSlack) -> None:
        if not isinstance(setting, SetSlack):
            raise SettingError(f"a policy returns SetSlack, not {setting!r}")
        if setting.stage not in self._gates:
            raise SettingError(
                f"stage {setting.stage!r} has no gate whose slack follows from the deadline"
            )
        slack_ns, hold_ns = setting.slack_ns, setting.hold_ns
        if slack_ns is not None and not _is_whole(slack_ns, least=-1):
            raise SettingError(
                f"stage {setting.stage!r}: slack_ns={slack_ns!r} must be None (ready-only), "
                "-1 (hold nothing), or a whole number from 0 to 10**18"
            )
        if hold_ns is not None and not _is_whole(hold_ns, least=0):
            raise SettingError(
                f"stage {setting.stage!r}: hold_ns={hold_ns!r} must be None, or a whole number "
                "from 0 to 10**18"
            )
        for trial in setting.trials:
            lengths = (trial.slack_ns, -1), (trial.hold_ns, 0)
            if not all(ns is None or _is_whole(ns, least=least) for ns, least in lengths):
                raise SettingError(
                    f"stage {setting.stage!r}: the trial {trial!r} has a length that cannot be set"
                )

    def _count(self, problem: Exception) -> None:
        self.errors += 1
        self.last_error = f"{type(problem).__name__}: {problem}".splitlines()[0]
        self.trace = "".join(traceback.format_exception(problem))


def _is_whole(number: object, *, least: int) -> bool:
    if isinstance(number, bool) or not isinstance(number, Integral):
        return False
    return least <= int(number) <= MOST_NS


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "item"):  # a NumPy number
        value = value.item()
    return value if isinstance(value, str | int | float | None) else str(value)
