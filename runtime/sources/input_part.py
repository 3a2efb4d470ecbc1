"""Part of an input's partitions, for one source stage of several."""

from __future__ import annotations

import zlib
from typing import Any

from slackwater.runtime.sources.spec import Input, Partition

__all__ = ["InputPart", "name_of_input"]


def name_of_input(given: object) -> str:
    """Return the name of an input's class; a part has that of the whole input."""
    whole = given.inner if isinstance(given, InputPart) else given
    return type(whole).__qualname__


class InputPart:
    """An input with some of the partitions of another.

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

    def __getattr__(self, name: str) -> Any:
        """Return what the whole input has."""
        if name.startswith("__") or name == "inner":  # asked for while it is unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of all partitions that the plan knows, in its order."""
        return tuple(self._stages)

    @property
    def is_single(self) -> bool:
        """Whether the part has one partition and gets no other."""
        known = list(self._stages.values())
        return known.count(self._index) == 1 and not getattr(self.inner, "grows", False)

    @property
    def share(self) -> float:
        """Share of the known partitions that the part has."""
        known = list(self._stages.values())
        return known.count(self._index) / len(known)

    def partitions(self) -> list[Partition]:
        """Return the partitions of this part."""
        listed: list[Partition] = self.inner.partitions()  # type: ignore[attr-defined]
        return [partition for partition in listed if self._is_here(partition.name)]

    def _is_here(self, name: str) -> bool:
        stage = self._stages.get(name)
        if stage is None:
            stage = zlib.crc32(name.encode()) % self._of
        return stage == self._index
