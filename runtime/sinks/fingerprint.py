"""Fingerprint that two runs must share for the second to continue the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slackwater.runtime.json_form import JsonObject, json_text

__all__ = ["Fingerprint", "InputPrint", "SinkRun", "differing"]


class InputPrint(NamedTuple):
    """Print of an input, made without reading all of it: words and a digest."""

    words: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Fingerprint(JsonObject):
    """Fingerprint of the flow up to a sink, its inputs and versions.

    Attributes:
        flow: digest of the steps, and of the sink's name and form.
        form: form of the sink's files, in words; "" if not known.
        inputs: {source: print of its input}.
        release: {package: version}.
    """

    flow: str
    inputs: Mapping[str, InputPrint]
    release: Mapping[str, str]
    form: str = ""


@dataclass(frozen=True, kw_only=True)
class SinkRun(JsonObject):
    """Run that a sink writes for.

    Attributes:
        job, flow: their names.
        fingerprint: fingerprint of the run; None if no run can continue this one.
        why_not: reason of that.
    """

    job: str
    flow: str
    fingerprint: Fingerprint | None = None
    why_not: str = ""

    @property
    def mark(self) -> str:
        """Text that is equal in all runs that may go on with one output.

        The fingerprint, so that a later run of the flow goes on; else the job, so that only the job
        itself does, from a checkpoint.
        """
        return (
            f"job {self.job}" if self.fingerprint is None else json_text(self.fingerprint.to_json())
        )


def differing(then: Fingerprint, now: Fingerprint) -> str | None:
    """Return the first difference in words; None if they are equal."""
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
                changed = f"{was.words} of another path, time of change or content"
            return f"source {source!r} read something else ({changed})"
    if then.form and then.form != now.form:
        return f"that sink had {then.form}, and this one has {now.form}"
    if then.flow != now.flow:
        return "the steps of the flow up to this sink (or a function's code) were others"
    return None
