"""Names that Polars, pandas, Spark, Flink and Kafka Streams use, and ours.

An error about such a name says ours. Nothing works under two names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from slackwater.runtime.nearest import choices

__all__ = [
    "EXPRESSION_NAMES",
    "LIST_NAMES",
    "STREAM_NAMES",
    "TEXT_NAMES",
    "TIME_NAMES",
    "SaysOurName",
]

STREAM_NAMES = {
    **dict.fromkeys(("where", "filterWhere"), "filter(condition)"),
    **dict.fromkeys(
        ("group_by", "groupby", "groupBy", "group_by_dynamic", "keyBy", "partition_by"),
        "aggregate(by='key', window=…, new=…) or .key_by('key')",
    ),
    **dict.fromkeys(
        ("agg", "reduce", "fold", "sum", "count"), "aggregate(window=…, new=sw.count())"
    ),
    **dict.fromkeys(
        ("window", "windowAll", "windowedBy", "rolling", "resample"),
        "aggregate(window=sw.tumbling('10s'), new=…)",
    ),
    "map": "map_rows(function, schema={…}) or .with_columns(new=expression)",
    **dict.fromkeys(
        ("apply", "transform", "pipe", "map_partitions", "mapInPandas", "mapInArrow"),
        "map_batches(function, schema={…})",
    ),
    **dict.fromkeys(
        ("flat_map", "flatMap"), "explode('list') or .map_batches(function, schema={…})"
    ),
    **dict.fromkeys(
        ("with_column", "withColumn", "withColumns", "assign"), "with_columns(new=expression)"
    ),
    "withColumnRenamed": "rename({'old': 'new'})",
    **dict.fromkeys(("union", "unionAll", "concat", "vstack"), "merge(other)"),
    **dict.fromkeys(
        ("distinct", "unique", "drop_duplicates", "dropDuplicates", "deduplicate"),
        "dedupe('key', within='1m')",
    ),
    **dict.fromkeys(
        ("join_asof", "asof_join", "merge_asof", "interval_join", "intervalJoin", "coGroup"),
        "join(other, on='key', within='5s')",
    ),
    **dict.fromkeys(
        (
            "watermark",
            "withWatermark",
            "with_watermark",
            "assign_timestamps_and_watermarks",
            "assignTimestampsAndWatermarks",
        ),
        "source(…, event_time='ts', disorder='5s') of the flow",
    ),
    **dict.fromkeys(
        ("side_output", "sideOutput", "get_side_output", "getSideOutput"), "late() or .diverted()"
    ),
    **dict.fromkeys(
        ("collect", "to_pandas", "to_arrow", "to_polars", "show", "head", "print", "write"),
        "sink('name', sw.collect_sink()), sw.print_sink() or another output",
    ),
    **dict.fromkeys(("to", "sink_to", "sinkTo", "add_sink"), "sink('name', output)"),
}
EXPRESSION_NAMES = {
    **dict.fromkeys(("isNull", "isnull", "isna"), "is_null()"),
    **dict.fromkeys(
        ("is_not_null", "isNotNull", "notnull", "notna"), "is_null(), with ~ before the expression"
    ),
    **dict.fromkeys(("isin", "is_contained_in"), "is_in([…])"),
    **dict.fromkeys(("alias", "as_", "name_as"), "with_columns(new=expression) of the stream"),
    **dict.fromkeys(("astype", "as_type"), "cast('int64')"),
    **dict.fromkeys(("fillna", "fill_nan", "ifnull"), "fill_null(value)"),
    **dict.fromkeys(("apply", "map"), "map_elements(function, 'float64')"),
    "otherwise": "fill_null(value), or sw.when(condition).then(a).otherwise(b)",
    **dict.fromkeys(
        ("sum", "mean", "avg", "min", "max", "count", "quantile", "median"),
        "aggregate(window=…, new=sw.sum('x')) of the stream",
    ),
    **dict.fromkeys(
        ("shift", "diff", "lag", "over", "rank", "cum_sum"), "process(…) of the stream"
    ),
}
TEXT_NAMES = {
    **dict.fromkeys(("to_uppercase", "upper_case"), "upper()"),
    **dict.fromkeys(("to_lowercase", "lower_case"), "lower()"),
    **dict.fromkeys(("strip_chars", "trim"), "strip()"),
    **dict.fromkeys(("len", "len_chars", "char_length"), "length()"),
    **dict.fromkeys(("strptime", "to_datetime", "to_date"), "to_time('%Y-%m-%d')"),
    **dict.fromkeys(("replace_all", "regexp_replace", "sub"), "replace(pattern, by)"),
    **dict.fromkeys(("startswith", "startsWith"), "starts_with('a')"),
    **dict.fromkeys(("endswith", "endsWith"), "ends_with('a')"),
    **dict.fromkeys(("substr", "substring"), "slice(start, length)"),
}
TIME_NAMES = {
    **dict.fromkeys(("strftime", "to_string"), "format('%Y-%m-%d')"),
    **dict.fromkeys(("floor", "trunc", "date_trunc"), "truncate('1h')"),
    "ordinal_day": "day_of_year()",
    **dict.fromkeys(("dayofweek", "day_of_week"), "weekday()"),
}
LIST_NAMES = dict.fromkeys(("len", "size", "lengths"), "length()")


class SaysOurName:
    """SaysOurName names our method where one of another library is called.

    Attributes:
        _called: what has the methods, for errors.
        _elsewhere: {name of another library: what to write here}.
    """

    _called: ClassVar[str]
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # for mypy each name would be there

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):  # Python and notebooks ask for these
                raise AttributeError(name)
            ours = self._elsewhere.get(name)
            way_out = f"write .{ours}" if ours is not None else choices(name, self._methods())
            raise AttributeError(f"{self._called} has no {name!r}; {way_out}")

    def _methods(self) -> list[str]:
        """Return the names of public methods."""
        return [name for name in dir(type(self)) if name[0].islower()]
