"""The query of [mace] §VIII: which share of a domain's visitors is male, which female. 14 stages.

```
visits ─ page ─ host ─ path ─ within ─ domain ─ of_domain ─ person ─┬─ men ──────┐
source   select  custom custom  filter  custom   filter      custom ├─ visitors ─┴─ both ─ …
                                                             (map)     sliding      join
… ─ share ─ report ─ out
    assign  select   sink
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import slackwater as sw

DOMAIN = "com"
SIZE_S, SLIDE_S = 10.0, 0.05
STAGES = (
    *("visits", "page", "host", "path", "within", "domain", "of_domain", "person"),
    *("men", "visitors", "both", "share", "report", "out"),
)
"""The operators of one query: what `add_query` names `1.visits`, and so on."""

Columns = dict[str, Any]
Bools = npt.NDArray[np.bool_]


def host_of(rows: Columns) -> Columns:
    """Return the host of each URL, and what is left of it."""
    rest = pc.replace_substring_regex(rows["url"], r"^[a-z]+://", "")
    slash = pc.find_substring(rest, "/").to_numpy(zero_copy_only=False)
    text = rest.to_pylist()
    cut = [one if at < 0 else one[:at] for one, at in zip(text, slash, strict=True)]
    left = ["" if at < 0 else one[at + 1 :] for one, at in zip(text, slash, strict=True)]
    return {
        "panelist": rows["panelist"],
        "host": pa.array(cut, pa.string()),
        "rest": pa.array(left, pa.string()),
    }


def path_of(rows: Columns) -> Columns:
    """Return how long the path of each URL is, without its query."""
    path = pc.replace_substring_regex(rows["rest"], r"[?#].*$", "")
    return {
        "panelist": rows["panelist"],
        "host": rows["host"],
        "length": pc.utf8_length(path).to_numpy(zero_copy_only=False).astype(np.int64),
    }


def domain_of(rows: Columns) -> Columns:
    """Return the top-level domain of each host."""
    last = [host.rpartition(".")[2] for host in rows["host"].to_pylist()]
    return {"panelist": rows["panelist"], "domain": pa.array(last, pa.string())}


class Person:
    """Joins visits with the panelists' table, which fits into memory; {panelist: gender}."""

    def __init__(self, genders: Mapping[str, str]) -> None:
        self._genders = dict(genders)

    def __call__(self, rows: Columns) -> Columns:
        """Return 1 for each visit of a man, 0 for others."""
        male = [self._genders.get(one) == "male" for one in rows["panelist"].to_pylist()]
        return {"domain": rows["domain"], "male": np.asarray(male, dtype=np.int64)}


def add_query(
    flow: sw.Dataflow,
    table: pa.Table,
    *,
    genders: Mapping[str, str],
    sink: sw.connectors.Output,
    prefix: str,
    domain: str = DOMAIN,
) -> None:
    """Add one query over the visits of a table to a flow; its stages are `{prefix}.{name}`."""

    def named(name: str) -> str:
        return f"{prefix}.{name}"

    window = sw.sliding(f"{SIZE_S:g}s", f"{round(1_000 * SLIDE_S)}ms")
    of_domain = (
        flow.source(named("visits"), sw.table(table), event_time="ts", time_unit="ns", speed=1.0)
        .select("panelist", "url", name=named("page"))
        .map_batches(
            host_of,
            {"panelist": "string", "host": "string", "rest": "string"},
            name=named("host"),
        )
        .map_batches(
            path_of,
            {"panelist": "string", "host": "string", "length": "int64"},
            name=named("path"),
        )
        .filter(sw.col("length") > 0, name=named("within"))
        .map_batches(domain_of, {"panelist": "string", "domain": "string"}, name=named("domain"))
        .filter(sw.col("domain") == domain, name=named("of_domain"))
    )
    person = of_domain.map_batches(
        Person(genders), {"domain": "string", "male": "int64"}, name=named("person")
    )
    men = person.aggregate(window=window, by="domain", men=sw.sum("male"), name=named("men"))
    visitors = person.aggregate(
        window=window, by="domain", visitors=sw.count(), name=named("visitors")
    )
    (
        men.join(visitors, on="domain", within="1ms", name=named("both"))
        .with_columns(
            male_percent=100.0 * sw.col("men") / sw.col("visitors"),
            name=named("share"),
        )
        .select("domain", "window_start", "male_percent", name=named("report"))
        .sink(named("out"), sink)
    )


def chosen(table: pa.Table, domain: str) -> tuple[Bools, Bools]:
    """Return which visits are within a site, and which of those are of the domain: masks.

    Written without the query's own steps, to count what they will have to do.
    """
    url = table["url"]
    path = pc.replace_substring_regex(url, r"^([a-z]+://)?[^/]*", "")
    bare = pc.replace_substring_regex(path, r"[?#].*$", "")
    within = pc.greater(pc.utf8_length(bare), 1).to_numpy()
    host = pc.replace_substring_regex(url, r"^(?:[a-z]+://)?([^/]*).*$", r"\1")
    return within, within & pc.ends_with(host, f".{domain}").to_numpy()
