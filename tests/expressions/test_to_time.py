"""Text becomes times: formats with offsets, short codes, and formats that read nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError, TypeMismatch
from slackwater.runtime.model import batch_of
from tests.support.rows import evaluated

TEXT = sw.col("s").str


def times_of(made: sw.Expr, texts: list[str | None]) -> list[str]:
    column: Any = evaluated(made, batch_of(range(len(texts)), {"s": pa.array(texts, pa.string())}))
    return [str(one) for one in column.astype("datetime64[ns]").astype("datetime64[s]")]


@pytest.mark.parametrize(
    ("form", "text", "utc"),
    [
        ("%Y-%m-%d %H:%M:%S%z", "2026-01-01 12:00:00+0100", "2026-01-01T11:00:00"),
        ("%Y-%m-%d %H:%M:%S%z", "2026-07-01 12:00:00+0000", "2026-07-01T12:00:00"),
        ("%Y-%m-%d %H:%M:%S", "2026-07-01 12:00:00", "2026-07-01T10:00:00"),
    ],
)
def test_an_offset_in_the_text_decides_over_the_zone(form: str, text: str, utc: str) -> None:
    assert times_of(TEXT.to_time(form, zone="Europe/Berlin"), [text]) == [utc]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%F %T", "2026-1-5 1:2:3"),
        ("%D %T", "1/5/26 1:02:03"),
        ("%e %h %Y %r", "5 Jan 2026 1:02:03 AM"),
        ("%F%t%R:%S", "2026-01-05\t1:02:03"),
    ],
)
def test_short_codes_read_what_their_long_ones_read(form: str, text: str) -> None:
    assert times_of(TEXT.to_time(form), [text]) == ["2026-01-05T01:02:03"]


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d %Y", "%H:%M %Z", "%G", "%G-%V", "%Y %V", "%C%y", "%-d.%m.%Y", "%H%"]
)
def test_a_format_that_reads_nothing_is_refused_at_the_line(form: str) -> None:
    with pytest.raises(TypeMismatch, match=r"str\.to_time\('%"):
        TEXT.to_time(form)


@pytest.mark.parametrize("form", ["%G-%V-%u", "%Y %j", "%Y %W %a", "%c", "%x %X", "%d%%%m", "%y%f"])
def test_a_format_that_reads_some_text_is_taken(form: str) -> None:
    TEXT.to_time(form)


def test_a_zone_is_a_name_or_an_offset() -> None:
    made = TEXT.to_time("%F %T", zone="+02:00")
    assert times_of(made, ["2026-01-05 01:02:03"]) == ["2026-01-04T23:02:03"]
    for zone in ("Mars/Base", "+25:00", ""):
        with pytest.raises(TypeMismatch, match=r"is not a time zone; write one such as"):
            TEXT.to_time("%F", zone=zone)


def test_a_time_beyond_the_ends_in_its_zone_names_its_own_row() -> None:
    made = TEXT.to_time("%Y-%m-%d %H:%M:%S", zone="Asia/Tokyo")
    with pytest.raises(OperatorError, match=r"1677-09-21.* in Asia/Tokyo is beyond") as caught:
        times_of(made, [None, None, "2000-01-01 00:00:00", "1677-09-21 01:00:00"])
    assert caught.value.place == 3
