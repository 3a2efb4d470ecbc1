"""A slot's process does without what few slots need: each has one, and its start is waited for."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from textwrap import dedent

import pytest
from ray import cloudpickle

import slackwater as sw
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import slot_plan


def test_conversions_do_not_load_pandas_and_who_asks_for_a_frame_gets_it() -> None:
    program = """
        import sys
        import numpy as np, pyarrow as pa
        from slackwater.actors.slot.process_setup import leave_out_pandas
        leave_out_pandas()
        pa.array([1, 2]).to_numpy()
        table = pa.table({"n": np.arange(3), "t": ["a", None, "c"]})
        table.to_pylist()
        assert "pandas" not in sys.modules
        assert table.to_pandas()["n"].tolist() == [0, 1, 2]
        import pandas
        assert pandas.__version__
    """
    run(program)


def test_arrow_knows_pandas_once_it_is_loaded_for_users_code() -> None:
    run("""
        import pyarrow as pa
        from slackwater.actors.slot.process_setup import leave_out_pandas, load_pandas
        leave_out_pandas()
        pa.array([1.0, float("nan")])
        load_pandas()
        import pandas as pd
        assert pa.lib._pandas_api.have_pandas
        assert pa.array(pd.Series([1, None], dtype="Int64")).to_pylist() == [1, None]
        assert pa.array(pd.Series([1.0, float("nan")])).to_pylist() == [1.0, None]
        assert pa.Table.from_pandas(pd.DataFrame({"n": [1]}))["n"].to_pylist() == [1]
    """)


def test_only_slots_with_users_code_have_pandas_and_stages_that_come_later_bring_it() -> None:
    with_code = slot_of(lambda rows: rows.map_batches(lambda batch: batch, schema={"n": "int64"}))
    without = slot_of(lambda rows: rows.filter(sw.col("n") > 1))
    run(f"""
        import base64, os, pickle, sys
        import pyarrow as pa
        from slackwater.actors.slot.actor import SlotActor
        from slackwater.actors.wire.keys import ChannelKeys
        with_code, without = (
            pickle.loads(base64.b64decode(text)) for text in ({with_code!r}, {without!r})
        )
        actor = SlotActor(without, keys=ChannelKeys.generate())
        assert "pandas" not in sys.modules
        actor.call("prepare", with_code)
        assert "pandas" in sys.modules and pa.lib._pandas_api.have_pandas
        os._exit(0)  # a slot's threads wait for its sockets
    """)
    run(f"""
        import base64, os, pickle, sys
        from slackwater.actors.slot.actor import SlotActor
        from slackwater.actors.wire.keys import ChannelKeys
        SlotActor(pickle.loads(base64.b64decode({with_code!r})), keys=ChannelKeys.generate())
        assert "pandas" in sys.modules
        os._exit(0)
    """)


def slot_of(step: Callable[[sw.Stream], sw.Stream]) -> str:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table({"ts": [1], "n": [1]}), event_time="ts", time_unit="ns")
    step(rows).sink("out", sw.collect_sink())
    plan = slot_plan(place(flow.name, plan_stages(flow.graph), ["node-1"]), "node-1")
    return base64.b64encode(cloudpickle.dumps(plan)).decode()


def run(program: str) -> None:
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", dedent(program)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_slot_loads_what_few_need_only_when_it_is_needed() -> None:
    run("""
        import sys
        import slackwater.actors.jobs.end_on_record, slackwater.actors.slot.actor
        import slackwater.ingest
        ours = {
            "actors.sinks.files", "actors.jobs.records", "runtime.life", "runtime.flow",
            "runtime.tune", "runtime.foresight", "runtime.placement", "runtime.rewrite",
            "runtime.simulate", "front_door",
        }
        dear = {f"slackwater.{one}" for one in ours} | {
            "pandas", "pyarrow.compute", "pyarrow.parquet", "pyarrow.fs", "ray", "sklearn",
            "scipy", "pyspark", "raydp", "pyarrow.dataset", "pyarrow.flight", "matplotlib",
        }
        assert not dear & sys.modules.keys(), dear & sys.modules.keys()
    """)


def test_a_tuner_loads_nothing_that_runs_a_slot_and_no_model_before_it_is_asked_for() -> None:
    run("""
        import sys
        import slackwater.actors.tuning.tuner
        ours = {
            "runtime.plan.plan", "runtime.schedule", "runtime.operators",
            "runtime.tune.predict.estimator", "front_door",
        }
        dear = {f"slackwater.{one}" for one in ours} | {"pandas", "pyarrow.compute", "zmq"}
        assert not dear & sys.modules.keys(), dear & sys.modules.keys()
    """)


@pytest.mark.parametrize(
    ("step", "is_needed"),
    [
        (lambda rows: rows.filter(sw.col("n") > 1), False),
        (lambda rows: rows.with_columns(t=sw.lit("text")), True),
        (lambda rows: rows.map_batches(lambda batch: batch, schema={"n": "int64"}), True),
        (lambda rows: rows.with_columns(small=sw.col("n").cast("int8")), True),
    ],
    ids=["numbers", "text", "a function of the user's", "a cast"],
)
def test_arrows_functions_are_there_before_the_start_where_they_will_be_needed(
    step: Callable[[sw.Stream], sw.Stream], is_needed: bool
) -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table({"ts": [1], "n": [1]}), event_time="ts", time_unit="ns")
    step(rows).sink("out", sw.collect_sink())
    stages = base64.b64encode(cloudpickle.dumps(plan_stages(flow.graph)))
    run(f"""
        import base64, pickle, sys
        from slackwater.actors.slot.process_setup import import_arrow_functions, leave_out_pandas
        leave_out_pandas()
        import_arrow_functions(pickle.loads(base64.b64decode({stages!r})))
        assert ("pyarrow.compute" in sys.modules) is {is_needed}
    """)
