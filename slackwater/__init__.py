"""Slackwater: dataflows over late, disordered event streams, inside a latency deadline.

import slackwater as sw

flow = sw.Dataflow("congestion")
buses = flow.source("buses", sw.parquet("buses/"), event_time="ts")
loops = flow.source("loops", sw.parquet("loops/"), event_time="ts")
buses.filter(sw.col("delay_s") > 300).join(loops, on="area", within="5s").sink(
    "jams", sw.parquet_sink("out/")
)
with sw.Cluster.local(nodes=3) as cluster:
    print(cluster.submit(flow).wait().ledger)

The names are those of `slackwater/front_door.py`, imported at the first use of one: a worker
imports `slackwater.runtime` and `slackwater.actors`, and needs no more.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Ray ends a process in mid-line that cannot write to its raylet, and believes it dead by this
# variable. Unset, Ray tests whether the parent is process 1, as it is in many containers and
# after `nohup`. Ray reads it once, at its import; so we set it before.
if "ray._raylet" not in sys.modules:
    os.environ["RAY_RAYLET_PID"] = str(os.getpid())

if TYPE_CHECKING:
    from slackwater.front_door import *  # noqa: F403
    from slackwater.front_door import __all__ as __all__
    from slackwater.front_door import __version__ as __version__

_ALSO = ("__all__", "__version__")


def __getattr__(name: str) -> Any:
    """Return a public name, once the front door is imported."""
    if not name.startswith("_") or name in _ALSO:
        front_door = import_module("slackwater.front_door")  # which binds modules here, too
        if name in globals():
            return globals()[name]
        if hasattr(front_door, name):
            return getattr(front_door, name)
        from slackwater.runtime.other_names import way_out_of  # noqa: PLC0415 - as above

        way_out = way_out_of("module", name, front_door.__all__)
        raise AttributeError(f"{__name__} has no {name!r}; {way_out}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, and those of the module itself."""
    return sorted({*globals(), *import_module("slackwater.front_door").__all__})
