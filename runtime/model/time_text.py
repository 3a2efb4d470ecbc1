"""Write dates and timestamps as text in any year, where Arrow ends in 32767."""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import TIME_UNIT_NS, time_unit

__all__ = ["clock_text"]

_FAR_NS = 28_000 * 365 * TIME_UNIT_NS["D"]
"""Distance from 1970 from which on Arrow's text is not used."""
_DAY_MS = 86_400_000


def clock_text(times: pa.Array) -> pa.Array:
    """Return dates, or timestamps without a zone, as text, 2040-07-01 12:00:00."""
    text, unit = times.cast(pa.string()), time_unit(times.type)
    whole = times.view(pa.int32() if times.type.bit_width == 32 else pa.int64())
    numbers = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_date64(times.type):
        numbers, unit = numbers // _DAY_MS, "D"
    most = min(_FAR_NS // TIME_UNIT_NS[unit], 2**63 - 1)
    is_far = (numbers > most) | (numbers < -most)
    if not is_far.any():
        return text
    far = [str(number).replace("T", " ") for number in numbers[is_far].view(f"M8[{unit}]")]
    return arrow_functions().replace_with_mask(text, pa.array(is_far), pa.array(far, pa.string()))
