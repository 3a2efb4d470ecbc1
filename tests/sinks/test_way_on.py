"""A failed sink says what is visible, what removes the cause, and what can be typed to go on."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest

from slackwater.runtime.errors import SinkError
from slackwater.runtime.sinks.fingerprint import Fingerprint, SinkRun
from slackwater.runtime.sinks.manifest import Manifest, Part, RunRecord
from slackwater.runtime.sinks.open_decision import ExistingOutput, open_decision, resume_refusal
from slackwater.runtime.sinks.remedies import PathFacts, free_there, remedy
from slackwater.runtime.sinks.way_on import missing_parts, way_on

MARKS = Fingerprint(flow="f", inputs={}, release={})
RUN = SinkRun(job="j", flow="f", fingerprint=MARKS)
PARTS = (Part("part-00000001.csv", 3, 30), Part("part-00000002.csv", 2, 20))
SHOWN = {part.name: part.bytes for part in PARTS}
MANIFEST = Manifest(
    kind="csv",
    schema=(("n", "int64"),),
    run=RunRecord("j", "f", "out", "0a", state="failed"),
    parts=PARTS,
    fingerprint=MARKS,
)


def existing(manifest: Manifest | None = MANIFEST, **options: Any) -> ExistingOutput:
    known: dict[str, Any] = {"shown": SHOWN, "hidden": {}, **options}
    return ExistingOutput(sink="out", path="/data/out", manifest=manifest, **known)


def advice(there: ExistingOutput | None, *, run: SinkRun = RUN, parts: Any = PARTS) -> str:
    return way_on(
        there,
        run,
        schema=MANIFEST.schema,
        kind="csv",
        is_file=False,
        parts=parts,
        waiting=4,
        remedy="make room",
    )


ODD = {"odd_manifest": "o/.m", "has_parts": True}


@pytest.mark.parametrize(
    ("number", "facts", "says", "says_not"),
    [
        (errno.ENOSPC, {}, "make room", "remove files"),
        (errno.ENOSPC, {"has_inodes": False}, "remove files there", "make room"),
        (errno.EDQUOT, {}, "quota", "make room"),
        (errno.EROFS, {}, "for writing", "make room"),
        (errno.EACCES, {}, "let this user", "make room"),
        (errno.EPERM, {}, "let this user", "make room"),
        (errno.ENOENT, {"is_folder_gone": True}, "its folder is gone", "make room"),
        (errno.ENOENT, {}, "which program removes files", "make room"),
        (errno.EFBIG, {}, "smaller rows=", "omit the ending"),
        (errno.EFBIG, {"is_file": True}, "omit the ending", "a smaller rows="),
        (errno.EISDIR, {"odd_manifest": "o/.m"}, ".m is not a regular file: move it away", "room"),
        (errno.EISDIR, {**ODD, "path": "o"}, "o/.m is not a regular file: move o away", "move it"),
        (errno.EISDIR, {**ODD, "path": "o/x", "is_file": True}, "move it and o/x away", "room"),
        (errno.EISDIR, {"odd_lock": "o/.l"}, "o/.l is not a regular file: move it away", "room"),
        (errno.ENOTDIR, {"no_folder": "y"}, "y is not a folder: move it away", "gone"),
        (errno.EMFILE, {}, "ulimit -n", "another path"),
        (errno.EIO, {}, "check that disk", "make room"),
        (errno.ESTALE, {}, "mount that", "make room"),
        (errno.ENAMETOOLONG, {}, "choose another path", "make room"),
        (None, {}, "choose another path", "make room"),
    ],
)
def test_each_cause_has_its_own_hint(
    number: int | None, facts: dict[str, Any], says: str, says_not: str
) -> None:
    hint = remedy(number, PathFacts(**facts))
    assert says in hint
    assert says_not not in hint


def test_free_room_is_told_only_where_room_is_missing() -> None:
    there = PathFacts(free_bytes=1 << 30)
    assert free_there(errno.ENOSPC, there) == " (1,024.0 MiB free there, too little)"
    assert free_there(errno.ENOSPC, replace(there, has_inodes=False)) == (
        " (no inodes are free there)"
    )
    assert free_there(errno.ENOENT, there) == ""
    assert free_there(errno.ENOSPC, replace(there, is_folder_gone=True)) == ""


UNMARKED = replace(MANIFEST, fingerprint=None, why_not="a callback gets rows again")
OUTPUTS = {
    "whole": existing(),
    "other columns": existing(replace(MANIFEST, schema=(("m", "int64"),))),
    "unmarked": existing(UNMARKED),
    "gone": existing(shown={PARTS[1].name: 20}),
    "cut": existing(shown={**SHOWN, PARTS[0].name: 7}),
    "no manifest": existing(None),
    "empty": existing(None, shown={}),
    "no parts": existing(replace(MANIFEST, parts=()), shown={}),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_is_advised_is_what_the_next_run_may_do(name: str) -> None:
    there = OUTPUTS[name]
    said = advice(there)
    allowed = {}
    for option in ("resume", "overwrite", "plain"):
        asked = {"resume": option == "resume", "overwrite": option == "overwrite"}
        try:
            open_decision(there, RUN, schema=MANIFEST.schema, kind="csv", is_file=False, **asked)
        except SinkError:
            allowed[option] = False
        else:
            allowed[option] = True
    assert allowed["resume"] or "(resume=True goes on" not in said
    assert allowed["overwrite"] or "with overwrite=True" not in said
    if not any(allowed.values()):
        assert "choose another path, or move /data/out away" in said
    assert ("resume=True goes on" in said) == (name == "whole")


def test_only_whole_parts_that_readers_see_count_as_published() -> None:
    assert advice(OUTPUTS["whole"]).startswith("2 parts with 5 rows are published and safe, 4 ")
    assert advice(OUTPUTS["gone"]).startswith("1 part with 2 rows is published and safe")
    assert advice(OUTPUTS["cut"]).startswith("1 part with 2 rows")
    hidden = existing(shown={}, hidden=SHOWN)
    assert advice(hidden).startswith("0 parts with 0 rows")


def test_what_cannot_be_looked_at_is_not_gone() -> None:
    said = advice(None)
    assert "cannot be looked at" in said
    assert "overwrite" not in said
    assert "resume" not in said


def test_an_overwrite_that_failed_says_that_the_old_output_stays() -> None:
    failed = replace(MANIFEST, run=replace(MANIFEST.run, job="old-1"), failed=MANIFEST.run)
    said = advice(existing(failed), parts=())
    assert "the output of job 'old-1' stays" in said
    assert "resume" not in said


def test_a_pending_part_counts_once_it_is_whole() -> None:
    pending = replace(MANIFEST, parts=PARTS[:1], pending=PARTS[1:])
    first, second = (part.name for part in PARTS)

    def settled(shown: dict[str, int], hidden: dict[str, int]) -> tuple[Part, ...]:
        manifest = pending.settled(shown=shown, hidden=hidden)
        assert manifest.pending == ()
        return manifest.parts

    assert settled({first: 30}, {second: 20}) == PARTS
    assert settled({first: 30, second: 20}, {}) == PARTS
    assert settled({first: 30}, {}) == PARTS[:1]
    assert settled({first: 30}, {second: 19}) == PARTS[:1]
    both = replace(MANIFEST, parts=(), pending=PARTS)
    assert both.settled(shown={second: 20}, hidden={}).parts == PARTS
    assert Manifest.from_json(pending.to_json()) == pending


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ((("n", "int64"), ("m", "int64")), "they have no column 'm'"),
        ((("m", "int64"),), "they have a column 'n', and this sink has none"),
        ((("n", "int32"),), "their column 'n' has type int64, and here int32"),
    ],
)
def test_the_column_that_differs_is_named(schema: Any, says: str) -> None:
    reason = resume_refusal(existing(), RUN, schema=schema, kind="csv", is_file=False)
    assert reason == says
    two = replace(MANIFEST, schema=(("m", "int64"), ("n", "int64")))
    turned = tuple(reversed(two.schema))
    reason = resume_refusal(existing(two), RUN, schema=turned, kind="csv", is_file=False)
    assert reason == "they have these columns in another order"


def test_refusals_advise_only_what_would_be_allowed() -> None:
    for there, says, says_not in [
        (OUTPUTS["whole"], "resume=True to continue", "cannot"),
        (OUTPUTS["unmarked"], "overwrite=True", "resume=True"),
        (OUTPUTS["cut"], "choose another path, or remove it", "overwrite=True"),
    ]:
        with pytest.raises(SinkError) as caught:
            open_decision(
                there,
                RUN,
                schema=MANIFEST.schema,
                kind="csv",
                is_file=False,
                overwrite=False,
                resume=False,
            )
        assert says in str(caught.value)
        assert says_not not in str(caught.value)


def test_parts_that_are_gone_or_cut_are_named_with_their_rows() -> None:
    assert missing_parts(PARTS, SHOWN) == ("", frozenset())
    note, lost = missing_parts(PARTS, {PARTS[1].name: 7})
    assert "part-00000001.csv with 3 rows is gone" in note
    assert "part-00000002.csv with 2 rows has 7 bytes and had 20" in note
    assert lost == {part.name for part in PARTS}
    many = [Part(f"p{place}", 1, 1) for place in range(9)]
    assert "and 6 more" in missing_parts(many, {})[0]
