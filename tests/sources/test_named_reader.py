"""What a source of one's own raises comes out with its name, its class and its line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError, SchemaError, SettingError, TypeMismatch
from slackwater.runtime.model.whose_code import RUNNING
from slackwater.runtime.sources.input_part import InputPart
from slackwater.runtime.sources.named_reader import open_named
from tests.support.own_inputs import Feed, rows
from tests.support.sources import NOW, drain, machine, take, times


def test_an_error_of_poll_names_source_class_and_line() -> None:
    def script() -> Iterator[Any]:
        yield rows(0, 2)
        raise KeyError("lat")

    source = machine(Feed(script))
    assert times([take(source, NOW)]) == [0, 1]
    with pytest.raises(IngestError) as caught:
        take(source, NOW)
    said = str(caught.value)
    assert re.search(
        r"source 's': FeedReader\.poll raised KeyError: .lat., at .*reader\.py, line \d+",
        said,
    )
    assert 'raise KeyError("lat")' in said
    assert "named_reader.py" not in said.split("\n", 1)[1].replace("test_named_reader.py", "")
    assert isinstance(caught.value.__cause__, KeyError)


class Closed(Feed):
    """A feed whose methods raise an error of this package, as a custom input may."""

    def __init__(self, method: str) -> None:
        super().__init__(lambda: iter([]))
        self.method = method

    def open(self) -> Any:
        return self if self.method != "open" else self.fail()

    def poll(self) -> Any:
        return self.fail()

    def close(self) -> None:
        self.fail()

    def fail(self) -> Any:
        raise sw.SlackwaterError("no ticket machine")


@pytest.mark.parametrize("method", ["open", "poll", "close"])
def test_an_error_of_ours_that_an_input_raises_names_it_too(method: str) -> None:
    with pytest.raises(
        IngestError, match=rf"'s': Closed\.{method} raised SlackwaterError: no tick"
    ):
        getattr(open_named("s", Closed(method)), method)()


def test_an_error_of_a_part_that_a_slot_reads_names_the_users_input() -> None:
    class Inline(Closed):
        reads_inline = True

    part = InputPart(Inline("poll"), index=0, of=2, known=())
    with pytest.raises(IngestError, match=r"'s': .*Inline.*\.poll raised SlackwaterError: no tick"):
        open_named("s", part).poll()


def test_an_error_of_open_names_the_input() -> None:
    class NoSuchFeed(Feed):
        def open(self) -> Any:
            raise ConnectionRefusedError("nobody there")

    with pytest.raises(IngestError, match=r"'s': .*NoSuchFeed\.open raised ConnectionRefused"):
        take(machine(NoSuchFeed(lambda: iter([]))), NOW)


def test_so_it_does_where_the_reader_itself_reads_by_name() -> None:
    """A thread that cannot be started is an error of the source that it was for."""

    class Threaded(Feed):
        is_named = True

        def open(self) -> Any:
            raise RuntimeError("can't start new thread")

    with pytest.raises(IngestError, match=r"'s': .*Threaded\.open raised RuntimeError"):
        take(machine(Threaded(lambda: iter([]))), NOW)


def test_an_exit_in_poll_ends_neither_us_nor_the_slot_but_is_an_error_of_that_source() -> None:
    def script() -> Iterator[Any]:
        sys.exit(3)
        yield

    with pytest.raises(IngestError, match=r"'s': FeedReader\.poll raised SystemExit: 3, at "):
        take(machine(Feed(script)), NOW)


def test_an_open_that_returns_no_reader_is_named() -> None:
    class Forgot(Feed):
        made: Any = None

        def open(self) -> Any:
            return self.made

    class Endless:
        def poll(self) -> None:
            return None

    feed = Forgot(lambda: iter([]))
    for made, said in ((None, r"None, .* poll"), (iter([]), r"a list_iterator, .* poll")):
        feed.made = made
        with pytest.raises(SchemaError, match=rf"'s': .*Forgot\.open returned {said}\(\); it must"):
            take(machine(feed), NOW)
    feed.made = Endless()
    with pytest.raises(SchemaError, match=r"an Endless, which has no close\(\)"):
        take(machine(feed), NOW)


def test_an_error_of_schema_names_the_source_where_the_flow_is_built() -> None:
    class Offline(Feed):
        def schema(self) -> Any:
            raise ConnectionRefusedError("nobody there")

    class Loose(Feed):
        def schema(self) -> Any:
            return ["t"]

    for kind, wrong, words in (
        (Offline, IngestError, r"'s': .*Offline\.schema raised ConnectionRefusedError: nobody"),
        (Loose, SchemaError, r"'s': .*Loose\.schema returned a list; .* pyarrow\.Schema"),
    ):
        with pytest.raises(wrong, match=words):
            sw.Dataflow("f").source("s", kind(lambda: iter([])), event_time="t")


def fed(given: Any) -> sw.Dataflow:
    flow = sw.Dataflow("f")
    flow.source("s", given, event_time="t").sink("out", sw.collect_sink())
    return flow


def test_a_schema_that_raises_is_named_where_no_event_time_is_said_either() -> None:
    class Offline(Feed):
        def schema(self) -> Any:
            raise ConnectionRefusedError("nobody there")

    with pytest.raises(IngestError, match=r"'s': .*Offline\.schema raised"):
        sw.Dataflow("f").source("s", Offline(lambda: iter([])))


def test_an_input_says_in_words_what_it_is() -> None:
    class Odd(Feed):
        words: Any = None

        def describe(self) -> Any:
            return self.words.strip()

    odd = Odd(lambda: iter([]))
    with pytest.raises(IngestError, match=r"'s': .*Odd\.describe raised AttributeError"):
        fed(odd)
    odd.words = b"bytes"
    with pytest.raises(TypeMismatch, match=r"Odd\.describe returned a bytes; .* a few words"):
        fed(odd)


@pytest.mark.parametrize(
    ("method", "made", "said"),
    [
        ("planned", None, r"planned returned None; it must return an input, such as itself"),
        ("notes", "late", r"notes returned 'late'; it must return a list of sentences"),
        ("notes", [3], r"notes returned \[3\]; it must"),
    ],
)
def test_what_an_optional_method_returns_is_checked(method: str, made: Any, said: str) -> None:
    feed = Feed(lambda: iter([rows(0, 1)]))
    vars(feed)[method] = lambda: made
    with sw.Simulation() as nodes, pytest.raises(SchemaError, match=rf"'s': Feed\.{said}"):
        nodes.submit(fed(feed)).wait()


@pytest.mark.parametrize(
    ("trait", "value", "said"),
    [
        ("grows", "yes", r"Feed\.grows is 'yes'; it must be True or False"),
        ("reads_inline", 1, r"Feed\.reads_inline is 1; it must"),
        ("is_history", None, r"Feed\.is_history is None; it must"),
        ("grows", True, r"Feed\.grows is True, and it has no partitions; write partitions\(self\)"),
        ("replay", "exact", r"Feed\.replay is 'exact', so .* open\(self, name=\"\", at=None\)"),
        (
            "skips_spooled",
            True,
            r"Feed\.skips_spooled is True, and its replay is 'again': only rows",
        ),
    ],
)
def test_traits_of_an_input_are_checked_where_it_is_given(
    trait: str, value: Any, said: str
) -> None:
    feed = Feed(lambda: iter([]))
    vars(feed)[trait] = value
    with pytest.raises(SettingError, match=rf"source 's': {said}"):
        fed(feed)


def test_a_mistake_in_an_input_is_no_advice_to_return_rows() -> None:
    for method, way_out in (("open", "mend it there\n"), ("poll", "there, or let it return what")):
        with pytest.raises(IngestError) as caught:
            getattr(open_named("s", Closed(method)), method)()
        assert way_out in str(caught.value)


def test_an_error_that_our_own_code_raises_passes_as_it_is() -> None:
    def script() -> Iterator[Any]:
        sw.tumbling("soon")
        yield

    with pytest.raises(SettingError, match=r"^[^\n]*soon[^\n]*$"):
        take(machine(Feed(script)), NOW)


@pytest.mark.parametrize("polled", [[1], {"t": [1]}, rows(0, 1).to_pylist()])
def test_what_is_no_record_batch_is_refused_with_the_way_out(polled: Any) -> None:
    with pytest.raises(SchemaError, match=r"FeedReader\.poll returned a .*pyarrow\.RecordBatch"):
        take(machine(Feed(lambda: iter([polled]))), NOW)


def test_whose_code_runs_is_known_while_it_runs() -> None:
    seen = []

    def script() -> Iterator[Any]:
        seen.append(RUNNING.get())
        yield rows(0, 1)

    assert times(drain(machine(Feed(script)))) == [0]
    assert seen == ["s"]
    assert RUNNING.get() is None


def test_an_input_of_ours_is_no_code_of_a_users(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(RUNNING, "tell", told.append)
    monkeypatch.setattr(RUNNING, "_last_step", None)
    assert times(drain(machine(sw.table({"t": [0, 1]})))) == [0, 1]
    assert told == []
    assert times(drain(machine(Feed(lambda: iter([rows(0, 1)]))))) == [0]
    assert told == ["s"]
