"""Answers to words of other libraries: they tell what to type here.

An error about such a word says ours. Nothing works under two names.

```
sw.avg("x")          place "module"    write sw.mean('x')
rows.groupBy("k")    place "stream"    write .aggregate(by='key', …)
.cast("bigint")      place "type"      write 'int64'
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

from slackwater.runtime.nearest import choices, listed
from slackwater.runtime.shown import shown

__all__ = [
    "ANSWERS",
    "SaysItHasNoParts",
    "SaysOurName",
    "answer_to",
    "option_choices",
    "way_out_of",
]

_WINDOW = "window=sw.tumbling('10s')"
_GROUPED = f"write `.aggregate(by='key', {_WINDOW}, total=sw.sum('x'))`"
_PROCESS = "`.process(MyClass, {'n': 'int64'}, by='key')`"
_OVER = "`.over(by='key', total=sw.sum('x'))`, perhaps with rows=10 or last='5m'"
_BEFORE = "`.over(by='key', rows=1, closed='start', before=sw.last('x'))`"
_AFTER = (
    "`.over(by='key', last='0s', ahead='1m', after=sw.first('x'))`, "
    "the next value that is not null, at most a minute later"
)
_FILLED = "`.over(by='key', x_filled=sw.last('x'))`"
_MEASURED = f"aggregates are of a window: write `stream.aggregate({_WINDOW}, new="
_READ = "write `flow.source('rows', sw.{}('{}'), event_time='t')`"
_RUN = "write `sw.Simulation().submit(flow).wait()`, or sw.Cluster.local() for processes"
_SUBMIT = "`.submit(flow).wait()`"
_PRINT = "write `.sink('rows', sw.print_sink())`, or"
_COLLECT = "`.sink('out', sw.collect_sink())`, and after the run job.result('out')"
_CLOCK = "write `flow.source('rows', data, event_time='t', out_of_order='late', disorder='5s')`"
_BEST = f"`.top_k('x', 3, by='key', {_WINDOW}, rank='place')`"
_SORTED = f"gates put rows in the order of their event time; the greatest are {_BEST}"
_NOT_WITHOUT_END = "a stream has no end: write a window, "
_DISTINCT = f"write `{{stream}}.aggregate(by='key', {_WINDOW}, n=sw.count_distinct('x'))`"
_EQUAL = (
    "`((sw.col('x') == sw.col('y')) | (sw.col('x').is_null() & sw.col('y').is_null()))"
    ".fill_null(False)`"
)
_LOCAL = (
    "`sw.col('t').dt.format('%Y-%m-%d %H:%M:%S.%f').str.to_time('%Y-%m-%d %H:%M:%S.%f', "
    "zone='Europe/Berlin')`, of a clock in Berlin"
)
_EPOCH = "`sw.col('t').cast('int64') // 10**9`, whole seconds"
_WEEKDAY = "`sw.col('t').dt.weekday()`, from 1, Monday, to 7"
_SESSION = "`.aggregate(by='key', window=sw.session('30m'), n=sw.count())`"

_TABLE: Mapping[str, Mapping[str, str]] = {
    "module": {
        "avg average": "`sw.mean('x')`",
        "percentile approx_percentile percentile_cont quantile_cont": "`sw.quantile('x', 0.95)`",
        "len length size n count_all": "`sw.count()`",
        "n_unique approx_count_distinct nunique distinct": "`sw.count_distinct('x')`",
        "stddev stddev_samp": "`sw.std('x')`",
        "stddev_pop": "`sw.std('x', ddof=0)`",
        "variance var_samp": "`sw.var('x')`",
        "var_pop": "`sw.var('x', ddof=0)`",
        "any_value first_value": "`sw.first('x')`",
        "last_value latest_by_offset": "`sw.last('x')`",
        "covar_samp covariance cov": "`sw.covar('y', 'x')`",
        "covar_pop": "`sw.covar('y', 'x', ddof=0)`",
        "correlation pearson": "`sw.corr('y', 'x')`",
        "regr_slope": "`sw.slope('y', 'x')`",
        "regr_intercept": "`sw.intercept('y', 'x')`",
        "max_by argmax": "in windows write `sw.arg_max('key', 'x')`",
        "min_by argmin": "in windows write `sw.arg_min('key', 'x')`",
        "array_agg collect_list implode list_agg": "`sw.collect('x')`",
        "collect_set": "their number is `sw.count_distinct('x')`, a list of all `sw.collect('x')`",
        "topk nlargest": "`sw.top_k('x', 3)`",
        "bool_or count_if": "`sw.any('b')`, or their number: `sw.count(where=sw.col('x') > 1)`",
        "bool_and every": "`sw.all('b')`",
        "rank row_number": f"a rank is a column of `stream{_BEST[1:]}",
        "cum_sum over": f"it is a step: write `stream{_OVER[1:]}",
        "lag": f"it is a step: write `stream{_BEFORE[1:]}",
        "lead": f"it is a step: write `stream{_AFTER[1:]}",
        "dense_rank": f"it is a class of yours: write `stream{_PROCESS[1:]}",
        "session_window event_time_session_windows session_windows": "`sw.session('30m')`",
        "global_window global_windows all_rows unbounded": "`sw.everything()`",
        "tumble tumbling_window tumbling_windows tumbling_event_time_windows window": (
            "`sw.tumbling('10s')`"
        ),
        "hop hopping sliding_window sliding_windows sliding_event_time_windows rolling": (
            "`sw.sliding('30s', '10s')`"
        ),
        "cumulate cumulative_window": "`sw.cumulative('1d', '1h')`",
        "read_csv scan_csv from_csv csv_source": _READ.format("csv", "rows.csv"),
        "read_parquet scan_parquet from_parquet": _READ.format("parquet", "rows.parquet"),
        "read_json read_ndjson scan_ndjson json ndjson read_json_lines": (
            _READ.format("jsonl", "rows.jsonl")
        ),
        "DataFrame LazyFrame from_pandas from_polars from_arrow from_pylist from_dict Table": (
            "`flow.source('rows', sw.table({'t': [1, 2], 'x': [3, 4]}), event_time='t')`"
        ),
        "kafka kafka_source from_kafka socket": (
            "there is no client of Kafka: write `flow.source('rows', MyInput(), event_time='t')` "
            "with an input of yours, or sw.spark_stream; docs/extending.md has it"
        ),
        "StreamExecutionEnvironment Environment StreamsBuilder KStream Flow Pipeline": (
            "`sw.Dataflow('name')`"
        ),
        "run execute start run_main collect_all": _RUN,
        "sql SparkSession SQLContext": (
            "there is no SQL: write `stream.filter(sw.col('x') > 1)`, "
            f"`stream.aggregate(by='key', {_WINDOW}, n=sw.count())`"
        ),
        "struct": "columns stay beside each other: write `stream.select('key', 'x')`",
        "concat_str concat_ws concat format": "`sw.col('key') + '-' + sw.col('s')`",
        "concat_list array": (
            "it is a column of a source, or of `stream.map_rows(function, schema)`"
        ),
        "element": "`sw.col('v').list.get(0)`",
        "date datetime timestamp to_date to_timestamp to_datetime": (
            "a time is one of Python: write `sw.lit(datetime(2026, 3, 1))`; text as a time is "
            "`sw.col('s').str.to_time('%Y-%m-%d')`"
        ),
        "now current_timestamp processing_time": (
            "there is no clock, so that each run gives the same: write `sw.event_time()`"
        ),
        "interval timedelta seconds minutes hours": "`sw.duration('30s')`",
        "if_else ifelse iff case nvl2": "`sw.where(sw.col('x') > 1, 'high', 'low')`",
        "ifnull nvl": "`sw.coalesce(sw.col('x'), 0)`",
        "isnull isna is_null": "`sw.col('x').is_null()`",
        "exclude selectors": (
            "`stream.drop('x')`, or the names one by one: `stream.select('key')`"
        ),
        "broadcast": "`stream.merge(other)`, then one class for both",
        "udf pandas_udf map_elements": "`sw.col('x').map_elements(function, 'float64')`",
        "cast try_cast": "`sw.col('x').cast('int64')`",
        "round": "`sw.col('x').round(2)`",
        "lower": "`sw.col('s').str.lower()`",
        "upper": "`sw.col('s').str.upper()`",
        "trim": "`sw.col('s').str.strip()`",
        "split": "`sw.col('s').str.split(',')`",
        "substring substr": "`sw.col('s').str.slice(0, 2)`, from 0",
        "regexp_extract": "`sw.col('s').str.extract('([0-9]+)')`",
        "regexp_replace": "`sw.col('s').str.replace('a', 'b')`",
        "year": "`sw.col('t').dt.year()`",
        "month": "`sw.col('t').dt.month()`",
        "day": "`sw.col('t').dt.day()`",
        "hour": "`sw.col('t').dt.hour()`",
        "date_trunc": "`sw.col('t').dt.truncate('1h')`",
        "date_format": "`sw.col('t').dt.format('%Y-%m-%d')`",
        "unix_timestamp": _EPOCH,
        "from_unixtime from_epoch": "`(sw.col('n') * 10**9).cast('timestamp')`, of seconds",
        "asc desc sort order_by": (
            "gates put rows in the order of their event time; write `sw.event_time()` for it"
        ),
        "WatermarkStrategy": _CLOCK,
        "input source": _READ.format("csv", "rows.csv"),
        "output sink": "`stream.sink('out', sw.collect_sink())`",
        **{
            name: f"`sw.col('x').{name}()`"
            for name in ("sqrt", "log", "exp", "floor", "ceil", "sin", "cos")
        },
        "abs": "`abs(sw.col('x'))`",
        "greatest max_horizontal": (
            "`sw.where(sw.col('x') > sw.col('y'), sw.col('x'), sw.col('y'))`"
        ),
        "least min_horizontal": "`sw.where(sw.col('x') < sw.col('y'), sw.col('x'), sw.col('y'))`",
        "seq no any_of pattern": "`sw.patterns.seq(a, b)`",
        "map filter join merge union key_on op operators": (
            "methods of a stream: write `stream.filter(sw.col('x') > 1)`"
        ),
        "Int8 Int16 Int32 Int64 Float32 Float64 Utf8 String Boolean": (
            "types are texts: write `sw.col('x').cast('int64')`"
        ),
    },
    "stream": {
        "where filter_where query eval": "`.filter(sw.col('x') > 1)`",
        "group_by group_by_dynamic partition_by": f"{_GROUPED}; for steps by key `.key_by('key')`",
        "agg reduce fold sum count mean min max avg shape height": (
            f"`.aggregate({_WINDOW}, n=sw.count(), total=sw.sum('x'))`"
        ),
        "window window_all windowed_by time_window rolling resample fold_window count_window": (
            f"`.aggregate({_WINDOW}, n=sw.count())`"
        ),
        "map map_values select_expr": (
            "`.with_columns(new=sw.col('x') * 2)`, or in Python .map_rows(function, schema)"
        ),
        "apply transform pipe map_partitions map_in_pandas map_in_arrow": (
            "`.map_batches(function, {'x': 'float64'})`"
        ),
        "flatten mapcat": ("`.explode('v')`, or in Python .flat_map(function, schema)"),
        "filter_map map_elements": "`.map_rows(function, {'x': 'float64'})`",
        "with_column assign mutate": "`.with_columns(new=sw.col('x') * 2)`",
        "with_column_renamed": "`.rename({'x': 'speed'})`",
        "with_row_index with_row_count zip_with_index row_number": (
            f"rows are numbered by key, in a class of yours: write {_PROCESS}"
        ),
        "union union_all union_by_name concat vstack append": (
            "`.merge(other)`; where columns differ .merge(other, fill=True)"
        ),
        "branch route partition": "`.split(sw.col('x') > 1)`, which has all other rows, too",
        "unique drop_duplicates deduplicate distinct": (
            "`.dedupe('key', within='1m')`; the last of them is .newest('key')"
        ),
        "n_unique nunique": _DISTINCT.format(stream=""),
        "value_counts": f"`.aggregate(by='x', {_WINDOW}, n=sw.count())`",
        "join_asof asof_join merge_asof": "`.asof(other, on='key')`",
        "interval_join co_group cross_join merge_on join_where": (
            "`.join(other, on='key', within='5s')`"
        ),
        "inner_join": "`.join(other, on='key', within='5s')`",
        "left_join": "`.join(other, on='key', within='5s', how='left')`",
        "right_join": "`.join(other, on='key', within='5s', how='right')`",
        "outer_join full_join": "`.join(other, on='key', within='5s', how='outer')`",
        "semi_join": "`.join(other, on='key', within='5s', how='semi')`",
        "anti_join": "`.join(other, on='key', within='5s', how='anti')`",
        "connect broadcast co_map": "`.merge(other)`, then one class for both",
        "watermark with_watermark assign_timestamps_and_watermarks with_timestamp_assigner": _CLOCK,
        "side_output get_side_output": (
            "write .late(), or .diverted(), after a step that has such rows"
        ),
        "collect to_pandas to_arrow to_polars to_list": f"write {_COLLECT}",
        "to_dicts fetch iterrows itertuples rows": f"write {_COLLECT}",
        "show print inspect foreach peek": f"{_PRINT} {_COLLECT}",
        "head first take": "`.limit(20)`; to look at rows .sink('few', sw.print_sink(20))",
        "tail sample slice": (
            "a stream has no end, and no last rows; the newest of each key is `.newest('key')`"
        ),
        "last latest last_value": f"`.newest('key', {_WINDOW})`",
        "to sink_to add_sink write": "`.sink('out', sw.parquet_sink('out/'))`",
        "write_stream output to_stream execute_insert": "`.sink('out', sw.parquet_sink('out/'))`",
        "write_csv to_csv sink_csv": "`.sink('out', sw.csv_sink('out.csv'))`",
        "write_parquet to_parquet sink_parquet": "`.sink('out', sw.parquet_sink('out/'))`",
        "write_json write_ndjson to_json sink_ndjson": "`.sink('out', sw.jsonl_sink('out.jsonl'))`",
        "foreach_batch for_each": "`.sink('out', sw.callback_sink(function))`",
        "sort order_by sort_values sort_by": _SORTED,
        "nlargest nsmallest bottom_k rank": f"{_BEST}; the least with ascending=True",
        "pivot melt unpivot stack unstack transpose crosstab": (
            "columns are fixed when the flow is built: write each, "
            "`.with_columns(a=sw.where(sw.col('key') == 'a', sw.col('x'), 0.0))`"
        ),
        "sql create_or_replace_temp_view create_temporary_view": (
            "there is no SQL: write `.filter(sw.col('x') > 1)`, "
            f"`.aggregate(by='key', {_WINDOW}, n=sw.count())`"
        ),
        "drop_nulls dropna": "`.filter(~sw.col('x').is_null())`",
        "fill_null fillna": "`.with_columns(x=sw.col('x').fill_null(0))`",
        "fill_nan": "`.with_columns(x=sw.where(sw.col('x').is_nan(), 0.0, sw.col('x')))`",
        "cast astype": "`.with_columns(x=sw.col('x').cast('int64'))`",
        "unnest": "`.with_columns(first=sw.col('v')[0])`, of a struct ['field']",
        "key_on": "`.key_by('key')`",
        "cum_sum": f"write {_OVER}",
        "shift lag diff": f"write {_BEFORE}",
        "lead": f"write {_AFTER}",
        "forward_fill ffill": f"write {_FILLED}",
        "stateful_map stateful scan": (
            f"a sum or the like: {_OVER}; else a class of yours: write {_PROCESS}"
        ),
        "session session_window": _SESSION,
        "suppress trigger allowed_lateness grace": (
            f"`.aggregate({_WINDOW}, n=sw.count(), slack='5s')`, or late='correct' there"
        ),
        "dtypes schema_of print_schema describe info": "`.schema`",
        "explain": "`.flow.explain()`",
        "persist cache checkpoint repartition rebalance set_parallelism coalesce": (
            "nothing is needed; a slow step takes replicas=: write "
            f"`.aggregate(by='key', {_WINDOW}, n=sw.count(), replicas=4)`"
        ),
        "execute run start submit": _RUN,
        "brackets": "a column is `sw.col('x')`; a stream of some columns is `.select('key', 'x')`",
        "iterated": f"rows come when the flow runs: write {_COLLECT}",
    },
    "keyed stream": {
        "window window_all windowed_by time_window count_window tumbling rolling group_by": (
            f"the window is an argument: write `.aggregate({_WINDOW}, n=sw.count())`"
        ),
        "agg reduce fold sum count mean min max avg reduce_window fold_window count_by_key": (
            f"`.aggregate({_WINDOW}, n=sw.count(), total=sw.sum('x'))`"
        ),
        "session session_window": "`.aggregate(window=sw.session('30m'), n=sw.count())`",
        "map flat_map stateful_map stateful transform transform_with_state scan apply": (
            "`.process(MyClass, {'n': 'int64'})`"
        ),
        "filter select with_columns drop rename map_rows map_batches merge sink": (
            "keys stand last: write `stream.filter(sw.col('x') > 1).key_by('key')`, "
            "then the operator"
        ),
        "interval_join left_join": "`.join(other.key_by('key'), within='5s')`",
        "join_asof asof_join merge_asof": "`.asof(other.key_by('key'))`",
        "dedupe unique distinct": "`stream.dedupe('key', within='1m')`",
        "brackets": "a column is `sw.col('x')`",
        "iterated": (
            "a key's rows come to a class of yours: write `.process(MyClass, {'n': 'int64'})`"
        ),
    },
    "expression": {
        "isna isnull": "`.is_null()`",
        "is_not_null notnull notna drop_nulls": "`~sw.col('x').is_null()`",
        "isin is_contained_in": "`.is_in([1, 2])`",
        "not_in is_not_in": "`~sw.col('x').is_in([1, 2])`",
        "alias as_ name_as name_to label": (
            "the name is an argument: write `stream.with_columns(new=sw.col('x') * 2)`"
        ),
        "astype as_type to_type convert": "`.cast('int64')`",
        "safe_cast": "`.try_cast('int64')`",
        "fillna ifnull nvl": "`.fill_null(0)`",
        "fill_nan": "`sw.where(sw.col('x').is_nan(), 0.0, sw.col('x'))`",
        "apply map transform": "`.map_elements(function, 'float64')`",
        "otherwise": "`sw.when(sw.col('x') > 1).then('high').otherwise('low')`",
        "abs": "`abs(sw.col('x'))`",
        "pow power": "`sw.col('x') ** 2`",
        "mod": "`sw.col('x') % 2`",
        "floordiv": "`sw.col('x') // 2`",
        "add plus": "`sw.col('x') + 1`",
        "sub minus": "`sw.col('x') - 1`",
        "mul multiply times": "`sw.col('x') * 2`",
        "truediv divide div": "`sw.col('x') / 2`",
        "neg negate": "`-sw.col('x')`",
        "ln": "`.log()`",
        "log1p": "`(sw.col('x') + 1).log()`",
        "expm1": "`sw.col('x').exp() - 1`",
        "eq equal_to": "`sw.col('x') == 1`",
        "eq_missing eq_null_safe": _EQUAL,
        "ne neq not_equal": "`sw.col('x') != 1`",
        "ne_missing": f"`~{_EQUAL[1:]}",
        "gt greater_than": "`sw.col('x') > 1`",
        "ge gte": "`sw.col('x') >= 1`",
        "lt less_than": "`sw.col('x') < 1`",
        "le lte": "`sw.col('x') <= 1`",
        "and_ or_ logical_and": "`(sw.col('x') > 1) & (sw.col('x') < 5)`, with | for or",
        "not_ invert": "`~(sw.col('x') > 1)`",
        "is_finite": "`abs(sw.col('x')) < float('inf')`",
        "is_infinite is_inf": "`abs(sw.col('x')) == float('inf')`",
        "is_not_nan": "`~sw.col('x').is_nan()`",
        "when": "`sw.when(sw.col('x') > 1).then('high').otherwise('low')`",
        "dtype": "`stream.schema`",
        "is_between": "`.between(1, 5)`",
        "clip clamp": (
            "`sw.when(sw.col('x') < 0).then(0.0).when(sw.col('x') > 1).then(1.0)"
            ".otherwise(sw.col('x'))`"
        ),
        "replace replace_strict map_dict recode": (
            "`sw.where(sw.col('x') == 1, 2, sw.col('x'))`; of text .str.replace('a', 'b')"
        ),
        "sum": _MEASURED + "sw.sum('x'))`",
        "mean avg": _MEASURED + "sw.mean('x'))`",
        "min": _MEASURED + "sw.min('x'))`",
        "max": _MEASURED + "sw.max('x'))`",
        "count len": _MEASURED + "sw.count('x'))`",
        "quantile": _MEASURED + "sw.quantile('x', 0.95))`",
        "median": _MEASURED + "sw.median('x'))`",
        "n_unique nunique unique": _DISTINCT.format(stream="stream"),
        "std": _MEASURED + "sw.std('x'))`",
        "var": _MEASURED + "sw.var('x'))`",
        "first": _MEASURED + "sw.first('x'))`",
        "last": _MEASURED + "sw.last('x'))`",
        "arg_max": _MEASURED + "sw.arg_max('key', 'x'))`",
        "arg_min": _MEASURED + "sw.arg_min('key', 'x'))`",
        "implode": _MEASURED + "sw.collect('x'))`",
        "top_k": _MEASURED + "sw.top_k('x', 3))`",
        "mode ewm_mean": f"it is a class of yours: write `stream{_PROCESS[1:]}",
        "rolling_mean rolling_sum over cum_sum cum_count cum_max cum_min": (
            f"it is a step: write `stream{_OVER[1:]}"
        ),
        "shift lag diff": f"it is a step: write `stream{_BEFORE[1:]}",
        "lead": f"it is a step: write `stream{_AFTER[1:]}",
        "forward_fill ffill": f"it is a step: write `stream{_FILLED[1:]}",
        "rank": f"a rank is a column of `stream{_BEST[1:]}",
        "sort asc desc limit head": (
            "gates put rows in the order of their event time; write `sw.event_time()` for it"
        ),
        "explode flatten": "`stream.explode('v')`",
        "struct field get_field": "a field is by its name in brackets, `sw.col('v')[0]` of a list",
        "get get_item": "`sw.col('v')[0]`, of a struct ['field']",
        "arr array": "`sw.col('v').list.length()`",
        "contains rlike regexp_matches": "`sw.col('s').str.contains('a')`",
        "like": "`sw.col('s').str.contains('^a')`, where LIKE has 'a%'",
        "ilike": "`sw.col('s').str.contains('(?i)^a')`, where ILIKE has 'a%'",
        "startswith": "`sw.col('s').str.starts_with('a')`",
        "endswith": "`sw.col('s').str.ends_with('a')`",
        "upper": "`sw.col('s').str.upper()`",
        "lower": "`sw.col('s').str.lower()`",
        "strip trim": "`sw.col('s').str.strip()`",
        "substr substring slice": "`sw.col('s').str.slice(0, 2)`",
        "split": "`sw.col('s').str.split(',')`",
        "year": "`sw.col('t').dt.year()`",
        "month": "`sw.col('t').dt.month()`",
        "day": "`sw.col('t').dt.day()`",
        "hour": "`sw.col('t').dt.hour()`",
        "strftime date_format": "`sw.col('t').dt.format('%Y-%m-%d')`",
        "truncate trunc date_trunc": "`sw.col('t').dt.truncate('1h')`",
        "filter where": "`stream.filter(sw.col('x') > 1)`, or sw.when for a value",
        "brackets": (
            "write `sw.col('s').str.slice(0, 2)` of text, `sw.col('v').list.slice(0, 2)` of a list"
        ),
    },
    "text": {
        "to_uppercase upper_case ucase": "`.upper()`",
        "to_lowercase lower_case lcase": "`.lower()`",
        "strip_chars trim": "`.strip()`",
        "strip_chars_start lstrip ltrim": r"`.replace(r'^\s+', '')`",
        "strip_chars_end rstrip rtrim": r"`.replace(r'\s+$', '')`",
        "len len_chars char_length size": "`.length()`",
        "strptime to_datetime to_date to_timestamp": "`.to_time('%Y-%m-%d')`",
        "replace_all regexp_replace sub replace_many": "`.replace('a', 'b')`",
        "startswith": "`.starts_with('a')`",
        "endswith": "`.ends_with('a')`",
        "substr substring head left": "`.slice(0, 2)`",
        "tail right": "`.slice(-2)`",
        "regexp_extract": "`.extract('([0-9]+)')`",
        "extract_all findall": "all of them are a list: write `stream.map_rows(function, schema)`",
        "rlike regexp_matches": "`.contains('a')`",
        "match": "`.contains('^a')`",
        "like": "`.contains('^a')`, where LIKE has 'a%'",
        "ilike": "`.contains('(?i)^a')`, where ILIKE has 'a%'",
        "fullmatch": "`.contains('^a$')`",
        "find": "`sw.col('s').map_elements(lambda s: s.find('a'), 'int64')`",
        "concat join cat": "`sw.col('key') + sw.col('s')`",
        "to_integer to_decimal cast astype": "`sw.col('s').cast('int64')`",
        "json_path_match json_decode get_json_object": (
            "a class or function reads JSON: write `sw.col('s').map_elements(function, 'float64')`"
        ),
        "title": "`sw.col('s').map_elements(str.title, 'string')`",
        "capitalize": "`sw.col('s').map_elements(str.capitalize, 'string')`",
        "zfill pad_start lpad rjust": (
            "`sw.col('s').map_elements(lambda s: s.rjust(5, '0'), 'string')`"
        ),
        "pad_end rpad ljust": "`sw.col('s').map_elements(lambda s: s.ljust(5), 'string')`",
        "reverse": "`sw.col('s').map_elements(lambda s: s[::-1], 'string')`",
        "encode": "`sw.col('s').map_elements(str.encode, 'binary')`",
        "isdigit isnumeric": "`.contains('^[0-9]+$')`",
        "isalpha": "`.contains('^[A-Za-z]+$')`",
        "split_exact rsplit": "`.split(',')`",
        "brackets": "a part is `.slice(0, 2)`, from the end `.slice(-2)`",
        "iterated": "a part is `.slice(0, 2)`",
    },
    "list": {
        "len size lengths count": "`.length()`",
        "eval map apply filter sort unique n_unique std var median reverse arg_max": (
            "one row for each element: write `stream.explode('v')`"
        ),
        "head": "`.slice(0, 2)`",
        "array_contains has": "`.contains(1)`",
        "avg": "`.mean()`",
        "element_at item": "`.get(0)`",
        "explode explode_outer": "`stream.explode('v')`",
        "brackets": "an element is `sw.col('v')[0]`; a part is `.slice(0, 2)`",
        "iterated": "one row for each element: write `stream.explode('v')`",
    },
    "time": {
        "strftime to_string date_format": "`.format('%Y-%m-%d')`",
        "floor trunc date_trunc": "`.truncate('1h')`",
        "round": "`(sw.col('t') + sw.duration('30m')).dt.truncate('1h')`",
        "ceil": "`(sw.col('t') + (sw.duration('1h') - 1)).dt.truncate('1h')`",
        "ordinal_day dayofyear": "`.day_of_year()`",
        "dayofweek day_of_week iso_weekday": _WEEKDAY,
        "day_name": "`.format('%A')`",
        "hours": "`.hour()`",
        "minutes": "`.minute()`",
        "seconds": "`.second()`",
        "days": "`.day()`",
        "date": "`sw.col('t').cast('date')`",
        "time": "`sw.col('t').cast('time')`",
        "epoch timestamp unix_timestamp": _EPOCH,
        "replace_time_zone tz_localize": _LOCAL,
        "convert_time_zone tz_convert at_time_zone": (
            "`sw.col('t').cast('timestamp[us, tz=Europe/Berlin]')`"
        ),
        "total_seconds total_milliseconds total_minutes": (
            "a difference is a number of nanoseconds: write "
            "`(sw.event_time() - 5) // sw.duration('1s')`"
        ),
        "millisecond": "`sw.col('t').cast('int64') // 10**6 % 1000`",
        "microsecond": "`sw.col('t').cast('int64') // 1000 % 10**6`",
        "nanosecond": "`sw.col('t').cast('int64') % 10**9`",
        "quarter": "`(sw.col('t').dt.month() + 2) // 3`",
        "week iso_week": "`.format('%V')`, the ISO week as text; its Monday is `.truncate('1w')`",
        "month_start": "`.truncate('1mo')`",
        "offset_by add_days": "`sw.event_time() + sw.duration('1h')`",
        "brackets": "a part is a method: write `.hour()`",
        "iterated": "a part is a method: write `.hour()`",
    },
    "choice": {
        "else_ else default end": "`.otherwise('low')`",
        "alias": "the name is an argument: write `stream.with_columns(new=sw.col('x') * 2)`",
    },
    "aggregates": {
        "alias as_ name": (
            f"the name is an argument: write `stream.aggregate({_WINDOW}, new=sw.sum('x'))`"
        ),
        "over partition_by": (
            f"keys are an argument: write `stream.aggregate(by='key', {_WINDOW}, new=sw.sum('x'))`"
        ),
        "filter where": "a condition is an option: write `sw.sum('x', where=sw.col('x') > 1)`",
        "cast round fill_null": (
            "compute with the result, downstream: write "
            "`stream.with_columns(y=sw.col('x').round(2))`"
        ),
        "arithmetic": (
            "compute with the result, downstream: write `stream.with_columns(y=sw.col('x') / "
            "sw.col('n'))`"
        ),
    },
    "flow": {
        "execute run start execute_async run_main compute": _RUN,
        "collect": "`stream.sink('out', sw.collect_sink())`, then job.result('out') after the run",
        "add_source from_source input stream read from_elements from_collection table load": (
            _READ.format("csv", "rows.csv")
        ),
        "read_csv csv scan_csv": _READ.format("csv", "rows.csv"),
        "read_parquet parquet scan_parquet": _READ.format("parquet", "rows.parquet"),
        "read_json jsonl json": _READ.format("jsonl", "rows.jsonl"),
        "map filter select join aggregate key_by with_columns group_by process pattern": (
            "methods of the stream that source() returns: write `stream.filter(sw.col('x') > 1)`"
        ),
        "output sink add_sink sink_to": "`stream.sink('out', sw.collect_sink())`",
        "sql execute_sql sql_query": (
            "there is no SQL: write `stream.filter(sw.col('x') > 1)`, "
            f"`stream.aggregate(by='key', {_WINDOW}, n=sw.count())`"
        ),
        "set_parallelism": f"`stream.aggregate(by='key', {_WINDOW}, n=sw.count(), replicas=4)`",
        "enable_checkpointing checkpoint": (
            "`stream.sink('out', sw.parquet_sink('out/', resume=True))`"
        ),
        "show print visualize": "`print(flow.explain())`",
    },
    "nodes": {
        "run execute start": f"write {_SUBMIT}",
        "collect result": f"write {_SUBMIT}; the job that submit returns has result('out')",
        "shutdown stop terminate": "`.close()`",
    },
    "job": {
        "collect results to_pandas to_polars to_arrow table fetch output rows": "`.result('out')`",
        "cancel kill terminate": "`.stop()`",
        "join await_termination get_job_execution_result run execute": "`.wait()`",
        "ledger": "`.wait().ledger`, or `.report()` while it runs",
    },
    "shedding": {
        "random_shedding": (
            "chance decides where nothing is ever ranked: write "
            "`sw.shedding.espice('1s', drops='events', first=10**9)`"
        ),
        "baseline_shedding": (
            "it is in benchmarks/espice/rivals.py; write "
            "`sw.shedding.espice('1s', drops='events')`, or copy it"
        ),
    },
    "call": {
        "Filtering.filter": (
            "conditions are one expression: write `.filter((sw.col('x') > 1) & (sw.col('x') < 5))`"
        ),
        "WithColumns.with_columns": (
            "names are arguments: write `.with_columns(new=sw.col('x') * 2)`"
        ),
        "Selecting.select": "`.select('key', 'x', new=sw.col('x') * 2)`",
        "Selecting.drop": "`.drop('x', 's')`",
        "Selecting.rename": "`.rename({'x': 'speed'})`",
        "Aggregating.aggregate": f"`.aggregate(by='key', {_WINDOW}, n=sw.count())`",
        "Joining.join": "pairs are near in time: write `.join(other, on='key', within='5s')`",
        "Deduping.dedupe": "`.dedupe('key', within='1m')`",
        "Processing.process": _PROCESS,
        "Patterning.pattern.drift": (
            "two steps in sequence allow for clocks that are off: write `.followed_by("
            "first=sw.col('x') < 1, then=sw.col('x') > 2, within='1s', drift='5ms')`"
        ),
        "Stream.sink": "`.sink('out', sw.collect_sink())`",
        "Expr.between": "`sw.col('x').between(1, 5)`",
        "Expr.log": "`sw.col('x').log10()`, or .log2()",
        "Expr.is_in": "`sw.col('x').is_in([1, 2])`",
        "when": "`sw.when(sw.col('x') > 1).then('high').otherwise('low')`",
        "where": "`sw.where(sw.col('x') > 1, 'high', 'low')`",
        "coalesce": "`sw.coalesce(sw.col('x'), 0.0)`",
        "col": "a column each: write `stream.select('key', 'x')`, or `sw.col('x') + sw.col('y')`",
    },
    "option": {
        "descending reverse ascending nulls_last": _SORTED,
    },
    "type": {
        "bigint long integer64 i64 longtype int64type": "`'int64'`",
        "int integer i32 int4 inttype integertype": "say how wide: `'int32'` or `'int64'`",
        "smallint short i16 int2": "`'int16'`",
        "tinyint byte i8": "`'int8'`",
        "ubigint u64": "`'uint64'`",
        "uinteger u32": "`'uint32'`",
        "float float8 number real8 f64 doubletype double": "`'float64'`",
        "real f32 floattype": "`'float32'`",
        "str text varchar char nvarchar utf8 object stringtype categorical enum uuid json": (
            "`'string'`"
        ),
        "boolean booltype bit logical": "`'bool'`",
        "bytes blob bytea varbinary bytearray": "`'binary'`",
        "datetime timestamptz timestamp_ntz timestamptype datetime64": (
            "`'timestamp'`, or with a zone `'timestamp[us, tz=Europe/Berlin]'`"
        ),
        "datetype date32": "`'date'`",
        "interval timedelta duration": "`'duration[ms]'`",
        "decimal numeric decimaltype money": (
            "digits, and those after the point: write `'decimal128(10, 2)'`"
        ),
        "list array struct map dict": (
            "lists and structs keep their types; cast an element, `'int64'`"
        ),
    },
}


def _folded(name: str) -> str:
    """Return a name without its style: group_by, groupBy, varchar(20) and VARCHAR."""
    return re.split(r"[(<\[]", name.strip() or name, maxsplit=1)[0].replace("_", "").casefold()


ANSWERS: Mapping[str, Mapping[str, str]] = {
    place: {_folded(name): text for names, text in rows.items() for name in names.split()}
    for place, rows in _TABLE.items()
}
"""{where it is typed: {word of others: what to type, code in backticks}}."""


def answer_to(place: str, name: str) -> str | None:
    """Return what to type for a word of others; None if it is not known."""
    text = ANSWERS[place].get(_folded(name))
    if text is None:
        return None
    return f"{'write ' if text.startswith('`') else ''}{text}".replace("`", "")


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    name: tuple(ours.split())
    for names, ours in {
        "delimiter separator delim": "sep",
        "quotechar quote_char": "quote",
        "na_values null_values nullstr": "nulls",
        "dtype dtypes schema_overrides column_types": "types",
        "usecols": "columns",
        "batch_size": "batch_rows",
        "comment_prefix comment_char": "comment",
        "allowed_lateness grace watermark wait": "slack disorder",
        "max_out_of_orderness watermark_delay delay": "disorder slack",
        "timestamp time_column timestamp_column rowtime": "event_time",
        "ignore_errors on_bad_lines": "on_bad",
    }.items()
    for name in names.split()
}
"""{option of another library: ours, in calls that have them}."""


def option_choices(option: str, named: Iterable[str]) -> str:
    """Return the way out after a wrong option, perhaps of another library."""
    every = list(named)
    equal = next((name for name in _OPTIONS.get(option, ()) if name in every), None)
    if equal is not None:
        return f"the nearest is {equal!r}; there are: {listed(every)}"
    return way_out_of("option", option, every)


def way_out_of(place: str, name: str, names: Iterable[str]) -> str:
    """Return the way out after a wrong name: our word, or the nearest."""
    return answer_to(place, name) or choices(name, names)


class SaysOurName:
    """SaysOurName names our method where one of another library is called.

    Attributes:
        _called: name of the object that has the methods, for errors.
        _place: place of its words in the table.
        _inner: public names that are not for users.
    """

    _called: ClassVar[str]
    _place: ClassVar[str]
    _inner: ClassVar[frozenset[str]] = frozenset()

    if not TYPE_CHECKING:  # for mypy each name would be there

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):  # Python and notebooks ask for these
                raise AttributeError(name)
            raise AttributeError(f"{self._called} has no {name!r}; {self._way_out_of(name)}")

    def _way_out_of(self, name: str) -> str:
        return way_out_of(self._place, name, self._methods())

    def _methods(self) -> list[str]:
        """Return the names of public methods."""
        return [name for name in dir(type(self)) if name[0].islower() and name not in self._inner]


class SaysItHasNoParts(SaysOurName):
    """SaysItHasNoParts tells what to type for `x[0]` and `for one in x`."""

    if not TYPE_CHECKING:

        def __getitem__(self, key: object) -> NoReturn:
            raise TypeError(
                f"{self._called} has no [{shown(key)}]; {answer_to(self._place, 'brackets')}"
            )

        def __iter__(self) -> Iterator[object]:
            raise TypeError(
                f"{self._called} has nothing to go through; {answer_to(self._place, 'iterated')}"
            )
