"""A store of records in memory."""

from __future__ import annotations


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        self.kept[key] = value

    def get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    def delete(self, key: str) -> None:
        self.kept.pop(key, None)

    def keys(self, prefix: str) -> list[str]:
        return [key for key in self.kept if key.startswith(prefix)]
