"""What two runs must share for the second to go on behind the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Fingerprint", "InputPrint", "SinkRun", "differing"]


class InputPrint(NamedTuple):
    """What an input is, told without reading all of it: in words, and a digest."""

    words: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """The flow up to a sink, what its sources read, and the versions that ran it.

    Attributes:
        flow: a digest of the steps.
        inputs: {source: what it reads}.
        release: {package: version}.
    """

    flow: str
    inputs: Mapping[str, InputPrint]
    release: Mapping[str, str]

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Fingerprint:
        """Return what its fields, as JSON, described.

        Raises:
            ValueError, KeyError, TypeError: they did not.
        """
        inputs = {str(name): InputPrint(*map(_text, one)) for name, one in plain["inputs"].items()}
        release = {str(name): _text(one) for name, one in plain["release"].items()}
        return cls(flow=_text(plain["flow"]), inputs=inputs, release=release)


@dataclass(frozen=True, kw_only=True)
class SinkRun:
    """The run that a sink writes for.

    Attributes:
        job, flow: their names.
        fingerprint: None: no run can go on behind this one.
        why_not: why.
    """

    job: str
    flow: str
    fingerprint: Fingerprint | None = None
    why_not: str = ""


def differing(then: Fingerprint, now: Fingerprint) -> str | None:
    """Return what is not the same, in words; None if all is."""
    for package in sorted({*then.release, *now.release}):
        had, has = then.release.get(package), now.release.get(package)
        if had != has:
            return f"that run had {package} {had}, and this one has {has}"
    for source in sorted({*then.inputs, *now.inputs}):
        if source not in then.inputs or source not in now.inputs:
            return f"source {source!r} is not in both"
        was, is_now = then.inputs[source], now.inputs[source]
        if was != is_now:
            changed = f"{was.words} then, {is_now.words} now"
            if was.words == is_now.words:
                changed = f"{was.words}, changed since"
            return f"source {source!r} read something else ({changed})"
    if then.flow != now.flow:
        return "the steps of the flow up to this sink (or a function's code) were others"
    return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
