"""A slot whose users' code says nothing of pandas does without; else it is there at the start."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

from ray import cloudpickle

import slackwater as sw
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import SlotPlan, slot_plan


# Their functions are local ones: they come to another process by value, as those of a script do.
def plain() -> Callable[..., Any]:
    return lambda batch: batch


def asks_for_a_frame() -> Callable[..., Any]:
    return lambda batch: batch.to_pandas()


def imports_it_when_called() -> Callable[..., Any]:
    def function(batch: Any) -> Any:
        def inner() -> Any:
            from pandas.api import types  # noqa: PLC0415 what the test is about

            return types

        return inner() and batch

    return function


def names_it_as_text() -> Callable[..., Any]:
    return lambda batch: __import__("pandas") and batch


def has_a_helper_that_does() -> Callable[..., Any]:
    helper = asks_for_a_frame()
    return partial(lambda batch, most: helper(batch)[:most], most=3)


def is_an_object_whose_class_does() -> Callable[..., Any]:
    class Base:
        def frame(self, batch: Any) -> Any:
            return batch.to_pandas()

    class Derived(Base):
        def __call__(self, batch: Any) -> Any:
            return self.frame(batch)

    return Derived()


def test_a_slot_has_pandas_at_its_start_if_its_users_code_names_it() -> None:
    functions = {
        plain: False,
        asks_for_a_frame: True,
        imports_it_when_called: True,
        names_it_as_text: True,
        has_a_helper_that_does: True,
        is_an_object_whose_class_does: True,
    }
    run(
        *(
            f"""
            plan = of({pickled(slot_of(function()))!r})
            SlotActor(plan, keys=ChannelKeys.generate())
            assert ("pandas" in sys.modules) is {is_there}, {function.__name__!r}
            """
            for function, is_there in functions.items()
        )
    )


def test_stages_that_come_later_bring_it_with_them_and_arrow_knows() -> None:
    run(f"""
        actor = SlotActor(of({pickled(slot_of(plain()))!r}), keys=ChannelKeys.generate())
        assert "pandas" not in sys.modules
        actor.call("prepare", of({pickled(slot_of(asks_for_a_frame()))!r}))
        import pyarrow as pa
        assert "pandas" in sys.modules and pa.lib._pandas_api.have_pandas
    """)


def test_modules_of_the_users_that_are_not_installed_are_read(tmp_path: Path) -> None:
    programs = []
    for text, does in (
        ("def f(rows): return rows", False),
        ("def f(rows): return rows.to_pandas()", True),
    ):
        folder = tmp_path / str(does)
        folder.mkdir()
        (folder / "own_module.py").write_text(text)
        programs.append(f"""
            sys.path.insert(0, {str(folder)!r})
            import own_module
            assert mention_pandas([own_module.f]) is {does}
        """)
    run(*programs)


def test_what_hangs_on_an_input_is_not_looked_through_without_end() -> None:
    run("""
        class Rows:
            def __init__(self, count):
                self.rows = [(n,) for n in range(count)]
        assert mention_pandas([Rows(100)]) is False
        assert mention_pandas([Rows(1_000_000)]) is True
    """)


def slot_of(function: Callable[..., Any]) -> SlotPlan:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table({"ts": [1], "n": [1]}), event_time="ts", time_unit="ns")
    rows.map_batches(function, schema={"n": "int64"}).sink("out", sw.collect_sink())
    return slot_plan(place(flow.name, plan_stages(flow.graph), ["node-1"]), "node-1")


def pickled(plan: SlotPlan) -> str:
    return base64.b64encode(cloudpickle.dumps(plan)).decode()


def run(*programs: str) -> None:
    """Run each program in a fork of one process, which has imported what a slot does."""
    head = """
        import base64, os, pickle, sys, traceback
        from slackwater.actors.slot.actor import SlotActor
        from slackwater.actors.slot.pandas_in_code import mention_pandas
        from slackwater.actors.wire.keys import ChannelKeys
        def of(text):
            return pickle.loads(base64.b64decode(text))
        failed = 0
        for program in PROGRAMS:
            child = os.fork()
            if child == 0:
                try:
                    exec(program)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)  # a slot's threads wait for its sockets
            failed += os.waitpid(child, 0)[1] != 0
        sys.exit(failed)
    """
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", f"PROGRAMS = {list(map(dedent, programs))!r}\n" + dedent(head)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
