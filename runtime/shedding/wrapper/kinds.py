"""Kinds of events: besides its place, shedding knows an event's type and a feature.

```
rows ──▶ code of the type ──▶ known[0]     the column of type=; without one, what the row fits
     ──▶ code of the feature ▶ known[1]    of sw.shedding.espice(feature=…); not there without one
```
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.schema import numbers_from_arrow
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.user_code import evaluated
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.shedding.settings import SheddingSettings

NUMBER, TYPE, FEATURE = "#number", "#type", "#feature"
"""Columns of rows that may be shed: number among the key's events, codes of type and feature."""
_NULL = -(2**63)
_MOST_TEXTS = 4096


class EventKinds:
    """EventKinds gives rows the codes of their type and feature.

    Args:
        step: step of the pattern.
        shed: the settings of shedding, with a bound `feature`.

    Attributes:
        repetitions: {code of a type: how often it stands in the pattern}, as far as it names types.
    """

    STATE = Fields("_types")

    def __init__(self, step: PatternStep, shed: SheddingSettings) -> None:
        assert shed.feature is None or isinstance(shed.feature, Expr)
        self._step, self._feature = step, shed.feature
        self._types: KeyIndex | dict[tuple[int, ...], int]
        self._texts: dict[str, int] = {}  # codes of texts that came, so that each is hashed once
        if step.type_column is None:
            self._types, self.repetitions = {}, {}
        else:
            self._types = KeyIndex(1)
            self.repetitions = self._coded(repetitions_of(step))

    def _coded(self, repeated: dict[Any, int]) -> dict[int, int]:
        """Return `repeated` by the codes of types, which these are the first to get."""
        assert isinstance(self._types, KeyIndex)
        if not repeated:
            return {}
        kind = pa.string() if all(value is None for value in repeated) else None
        values = pa.array(list(repeated), kind)
        column = values if pa.types.is_string(values.type) else numbers_from_arrow(values)
        codes = self._types.codes([column], len(values)).tolist()
        return dict(zip(codes, repeated.values(), strict=True))

    def of(
        self, rows: Batch, places: Int64Array, kinds: Int64Array, of_kind: list[tuple[int, ...]]
    ) -> Int64Array:
        """Return what is known of rows, shape (1, rows) or, with a feature, (2, rows).

        Args:
            rows: all rows of the read.
            places: places of the rows that fit an event.
            kinds: the kind of each of these.
            of_kind: the numbers that each kind fits.
        """
        types = self._types_of(rows, places, kinds, of_kind)
        feature = self._feature
        if feature is None:
            return types[np.newaxis]
        return np.stack([types, self._features(evaluated(feature, rows, step=self._step.name))])

    def _types_of(
        self, rows: Batch, places: Int64Array, kinds: Int64Array, of_kind: list[tuple[int, ...]]
    ) -> Int64Array:
        if isinstance(self._types, KeyIndex):
            assert self._step.type_column is not None
            return self._types.codes([rows.columns[self._step.type_column]], len(rows))
        types = np.zeros(len(rows), dtype=np.int64)
        known = self._types
        codes = np.zeros(len(of_kind), dtype=np.int64)
        # In the order in which they come: so codes do not depend on how kinds are numbered.
        for kind in dict.fromkeys(kinds.tolist()):
            codes[kind] = known.setdefault(of_kind[kind], len(known) + 1)
        types[places] = codes.take(kinds)
        return types

    def _features(self, values: Column) -> Int64Array:
        """Return a code of each value: itself for whole numbers, a hash for text.

        So no value is kept, and it has the same code in every run and replica.
        """
        if isinstance(values, Nullable):
            return np.where(values.valid, values.values.astype(np.int64), _NULL)
        if isinstance(values, np.ndarray):
            return values.astype(np.int64)
        encoded = values.dictionary_encode(null_encoding="encode")
        codes = np.array([self._code(value) for value in encoded.dictionary.to_pylist()], np.int64)
        features: Int64Array = codes.take(encoded.indices.to_numpy())
        return features

    def _code(self, text: str | bool | None) -> int:
        if text is None or isinstance(text, bool):
            return _NULL if text is None else int(text)
        code = self._texts.get(text)
        if code is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            digest = blake2b(text.encode(), digest_size=8).digest()
            code = self._texts[text] = int.from_bytes(digest, "little", signed=True)
        return code


def shown_columns(shed: SheddingSettings) -> tuple[str, ...]:
    """Return the further columns of the rows of a pattern whose events are ranked."""
    if not shed.ranks:
        return ()
    return (NUMBER, TYPE) if shed.feature is None else (NUMBER, TYPE, FEATURE)


def repetitions_of(step: PatternStep) -> dict[Any, int]:
    """Return {type: how often it stands in the pattern}."""
    repetitions: dict[Any, int] = {}
    for sequence in step.pattern.alternatives:
        for place in sequence.places:
            for number in place.asked:
                for kind in step.pattern.asked[number].types or ():
                    repetitions[kind] = repetitions.get(kind, 0) + place.least
    return repetitions
