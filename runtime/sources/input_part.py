"""Part of an input's partitions, for one source stage of several."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.spec import Input, InputTraits, Partition, SourceReader, traits_of

__all__ = ["InputPart", "name_of_input", "whole_input"]


def whole_input(given: object) -> object:
    """Return the input that a user gave, of a part of it."""
    return given.inner if isinstance(given, InputPart) else given


def name_of_input(given: object) -> str:
    """Return the name of an input's class; a part has that of the whole input."""
    return type(whole_input(given)).__qualname__


class InputPart(InputAround):
    """An input with some of the partitions of another. It opens them as that does.

    Those that are known when the flow is planned take turns among the stages. One that appears
    later goes to a stage by its name, without a word between stages.

    Args:
        inner: the whole input with all partitions.
        index: number of this stage, from 0.
        of: number of all its stages.
        known: names of the partitions that the plan knows, in its order.
    """

    def __init__(self, inner: Input, *, index: int, of: int, known: tuple[str, ...]) -> None:
        self.inner = inner
        self._index, self._of = index, of
        self._stages = {name: number % of for number, name in enumerate(known)}

    @property
    def traits(self) -> InputTraits:
        """Traits of the whole input, also those of how it is read."""
        return traits_of(self.inner)

    def open(self, *place: Any) -> SourceReader:
        """Open a partition of the input; see `Input`."""
        return self.inner.open(*place)

    @property
    def first_row(self) -> Any:
        """Method of the whole input that shows first rows; None if it has none."""
        return getattr(self.inner, "first_row", None)

    @property
    def fingerprint(self) -> Any:
        """Method of the whole input that returns its fingerprint; None if it has none."""
        return getattr(self.inner, "fingerprint", None)

    @property
    def notes(self) -> Any:
        """Method of the whole input that returns notes; None if it has none."""
        return getattr(self.inner, "notes", None)

    @property
    def reads_at(self) -> Any:
        """Method of the whole input that says where it reads; None if it has none."""
        return getattr(self.inner, "reads_at", None)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of all partitions that the plan knows, in its order."""
        return tuple(self._stages)

    @property
    def is_single(self) -> bool:
        """Whether the part has one partition and gets no other."""
        known = list(self._stages.values())
        return known.count(self._index) == 1 and not self.traits.grows

    @property
    def share(self) -> float:
        """Share of the known partitions that the part has."""
        known = list(self._stages.values())
        return known.count(self._index) / len(known)

    @property
    def partitions(self) -> Callable[[], list[Partition]]:
        """Lists the partitions of this part."""
        return self._listed

    def _listed(self) -> list[Partition]:
        whole = super().partitions
        assert whole is not None, "its step has made parts of it"
        return [partition for partition in whole() if self._is_here(partition.name)]

    def _is_here(self, name: str) -> bool:
        stage = self._stages.get(name)
        if stage is None:
            stage = zlib.crc32(name.encode()) % self._of
        return stage == self._index
