"""Settings of ProbSlack: how many misses or how much slack, and which rows estimates use."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from slackwater.runtime.closing.budget import GUARDS, GuardWord
from slackwater.runtime.closing.fitting import FitSettings
from slackwater.runtime.closing.simple import TICK_NS, refuse_no_tick
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import format_ns
from slackwater.runtime.shown import shown

FIT_ROWS = 10_000
"""T, [probslack] §4.1."""
FIRST_ROWS = 128


@dataclass(frozen=True)
class Settings:
    """Settings of ProbSlack, which closes a window when a further row is unlikely enough.

    Attributes:
        miss: δ, the share of windows that may miss a row; None if slack is bounded.
        slack_ns: Δ, the largest mean slack; None if misses are bounded.
        at_most_ns: the largest slack of a window; None if unbounded.
        scale: ε, in (0, 1]: the chance is held under ε·δ; None if fitted, so that the share of
            windows that miss a row is near δ (`Aim`); the guard keeps it below.
        guard: the guard of `Budget`.
        ordered: whether events of a type come in order. If False, the chance is that of any event,
            not of the next of each type. If None, they count as ordered until more than one in a
            hundred comes after a newer one of its type, and from then on as disordered.
        early: whether a window may close before its end, though not before the end of the window
            before it; else at its end at the earliest.
        fit_rows: T, the number of rows of an estimate.
        first_rows: the number of rows of the first estimate, at most T; T for [probslack] as it is.
        sliding: whether estimates use the last T rows and are renewed often; else each T in turn.
        together: whether all types share histograms.
        conditional: whether the chance counts that no row has come so far. False: P_miss as the
            paper prints it, for its experiments.
        tick_ns: ρ, the resolution of clocks.
        all_types: whether no row of a new type comes once windows close, as with sources.

    Raises:
        SettingError: a setting is out of its range.

    Source: [probslack] §3.1; §3.3 for `at_most_ns` and `slack_ns`. Differs: with several types
    each has the chance 1 − (1 − εδ)^(1/types), so that the chance that any type misses a row,
    1 − Π (1 − P), is at most εδ. The paper says that each type is treated separately; with δ for
    each, a window might miss a row with the chance 1 − (1 − δ)^types.
    """

    miss: float | None = 0.1
    slack_ns: int | None = None
    at_most_ns: int | None = None
    scale: float | None = 1.0
    guard: GuardWord = "strict"
    ordered: bool | None = None
    early: bool = True
    fit_rows: int = FIT_ROWS
    first_rows: int = FIRST_ROWS
    sliding: bool = False
    together: bool = False
    conditional: bool = True
    tick_ns: int = TICK_NS
    all_types: bool = True

    def __post_init__(self) -> None:
        refuse_no_tick(self.tick_ns)
        self._refuse_no_flags()
        if (self.miss is None) == (self.slack_ns is None):
            raise SettingError(
                "probslack bounds either misses or slack; give miss=0.1, or slack='20ms'"
            )
        if self.miss is not None and not (_is_number(self.miss) and 0 < self.miss < 1):
            raise SettingError(
                f"probslack: miss={shown(self.miss)} must be a share of windows above 0 and below "
                "1; to miss nothing write sw.closing.event_driven(), to wait for nothing "
                "sw.closing.ignore()"
            )
        if self.scale is not None and not (_is_number(self.scale) and 0 < self.scale <= 1):
            raise SettingError(
                f"probslack: scale={shown(self.scale)} must be above 0 and at most 1; or None, to "
                "fit it"
            )
        if self.guard not in GUARDS:
            raise SettingError(
                f"probslack: guard={shown(self.guard)} must be one of {', '.join(GUARDS)}"
            )
        for what, length_ns in (("slack", self.slack_ns), ("at_most", self.at_most_ns)):
            if length_ns is not None and length_ns < 0:
                raise SettingError(
                    f"probslack: {what}={length_ns} ns must be zero or more; write it like '20ms'"
                )
        for what, rows, usual in (
            ("fit_rows", self.fit_rows, FIT_ROWS),
            ("first_rows", self.first_rows, FIRST_ROWS),
        ):
            if not isinstance(rows, Integral) or isinstance(rows, bool) or rows <= 0:
                raise SettingError(
                    f"probslack: {what}={shown(rows)} must be a whole number, more than zero; omit "
                    f"it for {usual}"
                )
        for what in ("miss", "scale"):  # reports and snapshots take Python's numbers alone
            if (share := getattr(self, what)) is not None:
                object.__setattr__(self, what, float(share))
        for what in ("fit_rows", "first_rows"):
            object.__setattr__(self, what, int(getattr(self, what)))

    def _refuse_no_flags(self) -> None:
        for what in ("early", "sliding", "together", "conditional", "all_types"):
            if not isinstance(flag := getattr(self, what), bool):
                raise SettingError(f"probslack: {what}={shown(flag)} must be True or False")
        if self.ordered is not None and not isinstance(self.ordered, bool):
            raise SettingError(
                f"probslack: ordered={shown(self.ordered)} must be True, False or None; omit it "
                "to find out"
            )

    @property
    def text(self) -> str:  # noqa: D102 - see Closing
        if self.slack_ns is not None:
            text = f"as late as a mean slack of {format_ns(self.slack_ns)} allows"
        else:
            assert self.miss is not None
            text = f"when likely complete: at most {100 * self.miss:g} % of windows miss something"
        if self.at_most_ns is not None:
            text += f", at most {format_ns(self.at_most_ns)} after its end"
        return text

    @property
    def is_in_order(self) -> bool:
        """Whether a window misses nothing once each type has had an event past its end."""
        return self.ordered is True and self.all_types

    @property
    def fit_settings(self) -> FitSettings:
        """Settings of the estimates."""
        return FitSettings(
            rows=self.fit_rows,
            first=min(self.first_rows, self.fit_rows),
            sliding=self.sliding,
            together=self.together,
            tick_ns=self.tick_ns,
            at_most_ns=self.at_most_ns,
            conditional=self.conditional,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
