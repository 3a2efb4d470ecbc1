"""Manifest of a checkpoint on disk, whether it may be used, and what may go."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from slackwater.runtime.json_form import JsonObject, json_bytes
from slackwater.runtime.nearest import choices, listed
from slackwater.runtime.plan.division import Division
from slackwater.runtime.plan.former_names import SAME_NAMES, FormerNames
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.recovery.fingerprint import renamed_fingerprint
from slackwater.runtime.schedule.cut import STAYING
from slackwater.runtime.sinks.fingerprint import SinkRun

__all__ = [
    "FORMAT",
    "ChannelEntry",
    "CheckpointFacts",
    "CheckpointManifest",
    "Newest",
    "PartEntry",
    "Refusal",
    "differences",
    "refusal",
    "superseded",
]

FORMAT = 3
_AGAIN = "or begin again in another folder (checkpoint_folder=) or without (checkpoint=None)"
MOST_NAMED = 4
"""Most settings in the refusal of another flow."""

Fingerprint = Mapping[str, Mapping[str, str]]
"""{group: {name: digest, or text}}, all of which must agree; see `fingerprint_of`."""


@dataclass(frozen=True, kw_only=True)
class ChannelEntry(JsonObject):
    """Messages of a channel that were on their way at the mark.

    Attributes:
        messages, rows: how many of each.
        crc: CRC-32 of the packed messages.
    """

    messages: int
    rows: int
    crc: int


@dataclass(frozen=True, kw_only=True)
class PartEntry(JsonObject):
    """Part of a checkpoint: the file of a slot.

    Attributes:
        slot: name of the slot.
        file: name of the file, without its folder.
        bytes: size of the file.
        crc: CRC-32 of its contents: a checksum against damage, not against forgery.
        version: version of the slot's snapshot.
        stages: stages whose state is in it.
        channels: messages that were on their way, by channel.
    """

    slot: str
    file: str
    bytes: int
    crc: int
    version: int
    stages: tuple[str, ...] = ()
    channels: Mapping[str, ChannelEntry] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CheckpointFacts(JsonObject):
    """Facts of a checkpoint, as its job gives them. Values are those of JSON.

    Attributes:
        flow: name of the flow.
        job: id of the job.
        at_ns: wall clock when the checkpoint was begun.
        fingerprint: digests of the flow and its settings, {group: {name: digest}}.
        key_groups: {replica: number of key groups of each replica of its step}.
        partitions: {source: names of its partitions at its plan}, where several stages read it.
        runs: {sink: run that it writes for}.
        release: {package: version}.
        start_ns: start of the job's sources, by the clock of its slots.
        granted: {channel: credit that its receiver had given by its cut}.
    """

    flow: str
    job: str
    at_ns: int
    fingerprint: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    key_groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runs: Mapping[str, SinkRun] = field(default_factory=dict)
    release: Mapping[str, str] = field(default_factory=dict)
    start_ns: int = 0
    granted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CheckpointManifest(JsonObject):
    """Manifest of a complete checkpoint.

    Attributes:
        number: number of the checkpoint; a newer one has a higher number.
        facts: facts of its job.
        parts: parts of all slots.
    """

    number: int
    facts: CheckpointFacts
    parts: tuple[PartEntry, ...]

    @property
    def division(self) -> Division:
        """Division of the flow's steps into stages."""
        counts = self.facts.fingerprint.get("stages", {})
        return Division({n: int(text) for n, text in counts.items()}, self.facts.partitions)

    def parts_of(
        self, stages: Iterable[Stage], names: FormerNames = SAME_NAMES
    ) -> tuple[PartEntry, ...]:
        """Return the parts that have the state of some stages, whose names there `names` says."""
        then = {names.then(stage.name) for stage in stages}
        return tuple(part for part in self.parts if then & {*part.stages})

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as plain JSON values, with a digest of them."""
        plain = {"slackwater_checkpoint": FORMAT, **super().to_json()}
        return {**plain, "digest": _digest(plain)}

    @classmethod
    def from_json(cls, plain: Any) -> CheckpointManifest:
        """Return the manifest that `to_json` described.

        Raises:
            ValueError, KeyError, TypeError, OverflowError: `plain` is not such a manifest.
        """
        own = {key: value for key, value in dict(plain).items() if key != "digest"}
        if _digest(own) != plain["digest"]:
            raise ValueError("its digest is that of other contents")
        made = super().from_json(own)
        for part in made.parts:
            if "/" in part.file or part.file in ("", ".", ".."):
                raise ValueError(f"a part has the file name {part.file!r:.100}")
        return made


def _digest(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_bytes(plain)).hexdigest()


class Refusal(NamedTuple):
    """Refusal of a checkpoint.

    Attributes:
        number: number of the checkpoint.
        kind: cause, for code.
        reason: cause and way out, for people.
    """

    number: int
    kind: Literal["damaged", "missing", "version", "flow"]
    reason: str


class Newest(NamedTuple):
    """Newest checkpoint that can be used; None if none can.

    Attributes:
        checkpoint: its manifest, whose parts are whole.
        refused: newer ones that cannot be used, newest first.
    """

    checkpoint: CheckpointManifest | None
    refused: tuple[Refusal, ...] = ()

    def why_not(self, *, is_repeatable: bool) -> str | None:
        """Return why a job must not begin from here; None if it may.

        Rows of a newer checkpoint may have left. From an older one they are right only if the same
        rows come again; and without any, a flow that has run must not begin again unnoticed.

        Args:
            is_repeatable: whether the same rows come again from an older checkpoint.
        """
        unusable = [
            own
            for own in self.refused
            if self.checkpoint is None or not (is_repeatable or own.kind == "flow")
        ]
        for own in sorted(unusable, key=lambda own: own.kind in _HARMED):
            if own.kind not in _HARMED:
                return own.reason
            older = "" if self.checkpoint is None else ", and older ones lack rows that left since"
            return (
                f"{own.reason}{older}; bring its files back, or choose another folder, and empty "
                "sinks, to begin again"
            )
        return None


_HARMED = ("damaged", "missing")


def differences(then: Fingerprint, now: Fingerprint) -> dict[str, list[str]]:
    """Return the names whose digests differ, by group; without groups that agree."""
    groups = {
        group: sorted(
            name
            for name in {*then.get(group, {}), *now.get(group, {})}
            if then.get(group, {}).get(name) != now.get(group, {}).get(name)
        )
        for group in sorted({*then, *now})
    }
    return {group: names for group, names in groups.items() if names}


def refusal(
    manifest: CheckpointManifest,
    facts: CheckpointFacts,
    *,
    version: int,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Refusal | None:
    """Return why a job cannot go on from a checkpoint; None if it can.

    Its stages may be in other slots: each entry of the manifest names those whose state it has.

    Args:
        manifest: manifest of the checkpoint.
        facts: facts of the job that is to go on.
        version: version of slots' snapshots that this release reads.
        renamed: steps that the user has renamed, {old: new}.
    """
    number = manifest.number
    if manifest.facts.flow != facts.flow:
        return Refusal(
            number,
            "flow",
            f"checkpoint {number} is of flow {manifest.facts.flow!r}, and this is flow "
            f"{facts.flow!r}; give each flow a folder of its own",
        )
    versions = {part.version for part in manifest.parts} - {version}
    if versions:
        return Refusal(
            number,
            "version",
            f"checkpoint {number} has snapshots of version {min(versions)}, and this release "
            f"reads version {version}; {_by_release(manifest.facts)}",
        )
    steps = manifest.facts.fingerprint.get("steps", {})
    for old, new in renamed.items():
        if old not in steps and new not in steps:
            return Refusal(
                number,
                "flow",
                f"renamed={{{old!r}: {new!r}}}: checkpoint {number} has no step {old!r}; "
                f"{choices(old, steps)}",
            )
    then, now = renamed_fingerprint(manifest.facts.fingerprint, renamed), facts.fingerprint
    differ = differences(then, now)
    if differ:
        gone_or_new = then.get("steps", {}).keys() ^ now.get("steps", {}).keys()
        texts = [
            _difference(group, names, then, now)
            for group, all_names in differ.items()
            if (names := [n for n in all_names if group == "steps" or n not in gone_or_new])
        ]
        return Refusal(
            number,
            "flow",
            f"checkpoint {number} was taken of another flow: {'; '.join(texts)}; "
            f"{_way_out(differ, then, now)}, {_AGAIN}",
        )
    return None


def _way_out(differ: Collection[str], then: Fingerprint, now: Fingerprint) -> str:
    """Return what lets a flow go on with its checkpoints."""
    if set(differ) == {"stages"}:
        return "give it as many replicas= and slots as it had"
    had, has = then.get("steps", {}), now.get("steps", {})
    new = {has[name]: name for name in has if name not in had}
    renamed = {name: new[had[name]] for name in had if name not in has and had[name] in new}
    if renamed:
        return f"if you have renamed steps, say renamed={renamed}; else submit the flow as it was"
    return "submit the flow as it was"


def _difference(group: str, names: Sequence[str], then: Fingerprint, now: Fingerprint) -> str:
    """Return in words how two fingerprints differ in a group."""
    what = f"{_WORDS.get(group, group)} differ"
    if group not in _AS_TEXT:
        return f"{what} ({listed(names)})"
    was, now_is = then.get(group, {}), now.get(group, {})
    known = [f"{n}: {was.get(n, 'none')}, now {now_is.get(n, 'none')}" for n in names[:MOST_NAMED]]
    return f"{what} ({'; '.join(known)}{'; …' if len(names) > MOST_NAMED else ''})"


_WORDS = {"orders": "orders of rows", "stages": "numbers of stages"}
_AS_TEXT = ("inputs", "orders", "settings", "speeds", "stages", "starts")
"""Groups of a fingerprint that have texts for people."""


def other_format(number: int, plain: Mapping[str, Any]) -> Refusal:
    """Return the refusal of a manifest of another format."""
    return Refusal(
        number,
        "version",
        f"checkpoint {number} has format {plain['slackwater_checkpoint']!r:.20}, and this release "
        f"reads format {FORMAT}; go on with the release of slackwater that wrote it, {_AGAIN}",
    )


def _by_release(facts: CheckpointFacts) -> str:
    wrote = facts.release.get("slackwater")
    own = f"slackwater {wrote}" if wrote else "the release of slackwater"
    return f"go on with {own} that wrote it, {_AGAIN}"


def superseded(
    complete: Collection[int], damaged: Collection[int], refers: Collection[int] = ()
) -> set[int]:
    """Return the checkpoints of a flow that may go.

    Args:
        complete: numbers of its complete checkpoints.
        damaged: numbers of damaged ones, which go once enough newer ones are complete.
        refers: numbers that a source or a sink still refers to.
    """
    staying = sorted(complete)[-STAYING:]
    oldest = staying[0] if len(staying) == STAYING else 0
    gone = {number for number in damaged if number < oldest}
    return ({*complete} - {*staying} | gone) - {*refers}
