"""Read durations from text: a whole number and its unit, as `csv_sink` writes them.

```
"5s"  "-250ms"  "7us"  "9ns"      of any unit that the type holds
"5"                               of the unit of the type
```
"""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.model.arrow_functions import arrow_functions

__all__ = ["durations_in"]

_FORM = r"^(?P<number>[+-]?[0-9]+)(?P<unit>s|ms|us|ns|)$"
_PLUS = r"^\+"


def durations_in(text: pa.Array, to: pa.DataType) -> pa.Array:
    """Return text as durations of a type.

    Raises:
        ArrowInvalid: a text is no duration, or none of the type.
    """
    of_arrow = arrow_functions()
    parts = of_arrow.extract_regex(of_arrow.utf8_trim_whitespace(text), _FORM)
    if parts.null_count > text.null_count:
        raise pa.ArrowInvalid("write a whole number and its unit, such as 5s, 250ms, 7us or 9ns")
    numbers, units = parts.flatten()
    whole = of_arrow.replace_substring_regex(numbers, _PLUS, "").cast(pa.int64())
    made = pa.nulls(len(text), to)
    for unit in of_arrow.unique(units).drop_null().to_pylist():
        is_so = of_arrow.equal(units, unit)
        own = of_arrow.if_else(is_so, whole, None).view(pa.duration(unit or to.unit))
        made = of_arrow.if_else(is_so, own.cast(to), made)
    return made
