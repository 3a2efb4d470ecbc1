"""Settings of a prediction, and their check: an error names the wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from os import PathLike
from typing import TypedDict

from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.model import Duration
from slackwater.runtime.nearest import choices
from slackwater.runtime.shown import shown
from slackwater.runtime.simulate import LinkModel

__all__ = ["Ahead", "Known", "PredictOptions", "check_asked"]


class Ahead(TypedDict, total=False):
    """Options of `FlowHost.predict` beside a flow, its rates and its sample."""

    placement: Mapping[str, str] | None
    limits: Limits | None
    tuning: Tuning | None
    horizon: Duration
    width: Duration
    seed: int
    speed: float | None
    link: LinkModel | None


class Known(TypedDict, total=False):
    """Options of `FlowHost.predict` on what is known beside a sample."""

    history: str | PathLike[str] | None
    costs: Mapping[str, Duration] | None


class PredictOptions(Ahead, Known, total=False):
    """Options of `FlowHost.predict` beside a flow, its rates and its sample."""


_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "placement": ((Mapping,), '{stage: slot or node}, such as {"pairs": "node-2"}'),
    "limits": ((Limits,), "sw.Limits(…)"),
    "link": ((LinkModel,), "sw.testing.LinkModel(delay_ns=…, bytes_per_s=…)"),
    "costs": ((Mapping,), '{stage: what a row of it takes}, such as {"pairs": "2ms"}'),
    "history": ((str, PathLike), "the folder that jobs have kept samples in"),
    "speed": ((Real,), "a number above 0, such as 1"),
    "seed": ((Integral,), "a whole number that is not below 0"),
}
_OPTIONS = tuple(PredictOptions.__annotations__)


def check_flow(flow: object) -> None:
    """Check that something is a flow.

    Raises:
        SettingError: it is not.
    """
    if not isinstance(flow, Dataflow):
        raise SettingError(f"{flow!r} is not a flow: give what sw.Dataflow(…) made")


def check_asked(flow: object, **asked: object) -> None:
    """Check the kind of each setting of a prediction; None if it was omitted.

    Args:
        flow: flow to predict, a `Dataflow`.
        **asked: settings, by their names in `FlowHost.predict`.

    Raises:
        SettingError: a setting is unknown, or of another kind; the error names it and the kind.
    """
    check_flow(flow)
    for name, value in asked.items():
        if name not in _OPTIONS:
            raise SettingError(f"predict has no option {name!r}; {choices(name, _OPTIONS)}")
        if name not in _KINDS:
            continue
        kinds, wanted = _KINDS[name]
        is_odd = not isinstance(value, kinds) or isinstance(value, bool)
        if value is not None and (is_odd or (name == "seed" and value < 0)):  # type: ignore[operator]
            raise SettingError(f"{name}={shown(value)} is none: give {wanted}")
    placement = asked.get("placement")
    for stage, where in placement.items() if isinstance(placement, Mapping) else ():
        if not isinstance(stage, str) or not isinstance(where, str):
            raise SettingError(
                f"placement= has {stage!r}: {where!r}, which is not a stage and its slot: give "
                f"{_KINDS['placement'][1]}"
            )
