"""Objects of users as bytes, so that they arrive through Ray as they left.

Ray lays large arrays into its store, and gives a worker read-only views of them. An array that a
user's function writes to, as it may in a simulation, would raise there.

```
plan ─▶ InBand ─▶ bytes, with arrays of NumPy within          ─▶ plan, its arrays writable
                  beside them Arrow's rows, objects of Ray    ─▶ as Ray sends them
```
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection
from typing import Any, Generic, TypeVar

import pyarrow as pa
import ray
from ray import cloudpickle
from ray.actor import ActorHandle

__all__ = ["InBand", "copied"]

_T = TypeVar("_T")
_BY_RAY = (pa.RecordBatch, pa.Table, pa.Array, pa.ChunkedArray, ray.ObjectRef, ActorHandle)


class InBand(Generic[_T]):
    """Wraps an argument of an actor, which receives the argument itself.

    Args:
        argument: object that Ray would send as an argument of a call.
    """

    def __init__(self, argument: _T) -> None:
        self._argument = argument

    def __reduce__(self) -> tuple[Callable[[bytes, list[Any]], _T], tuple[bytes, list[Any]]]:
        return _unpacked, _packed(self._argument)


def copied(held: _T, *, shared: Collection[object] = ()) -> _T:
    """Return an object as it would arrive through Ray.

    Args:
        held: the object. Arrow's rows in it are shared, since they never change.
        shared: objects in it that are to be shared, too.
    """
    arrived: _T = _unpacked(*_packed(held, _Copier, shared))
    return arrived


def _packed(
    held: object, kind: type[_Pickler] | None = None, shared: Collection[object] = ()
) -> tuple[bytes, list[Any]]:
    stream = io.BytesIO()
    pickler = (kind or _Pickler)(stream, shared)
    pickler.dump(held)  # type: ignore[no-untyped-call]
    return stream.getvalue(), pickler.beside


class _Pickler(cloudpickle.CloudPickler):
    """Pickles all but objects that Ray sends better, or that are shared, which it collects."""

    def __init__(self, stream: io.BytesIO, shared: Collection[object]) -> None:
        super().__init__(stream, protocol=5)  # type: ignore[no-untyped-call]
        self.beside: list[Any] = []
        self._shared = {id(value) for value in shared}

    def persistent_id(self, held: Any) -> int | None:
        if not isinstance(held, _BY_RAY) and id(held) not in self._shared:
            return None
        self.beside.append(held)
        return len(self.beside) - 1


class _Copier(_Pickler):
    """Pickles classes of a program or a notebook, so that this process gets copies.

    By its mark cloudpickle finds a class in the process that it came from, and sets all methods of
    that one: the user's class would have copies of its globals.
    """

    def reducer_override(self, held: Any) -> Any:
        reduced = super().reducer_override(held)  # type: ignore[no-untyped-call]
        if not isinstance(held, type) or not isinstance(reduced, tuple) or len(reduced) < 6:
            return reduced
        make, (*given, _mark, extra), *rest = reduced
        return make, (*given, None, extra), *rest


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, beside: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._beside = beside

    def persistent_load(self, number: int) -> Any:
        return self._beside[number]


def _unpacked(data: bytes, beside: list[Any]) -> Any:
    return _Unpickler(data, beside).load()
