"""A driver for `test_ray_nodes.py` to kill: starts one local node, says so, and ends as it is told.

Run as `python dying_driver.py <way>`; prints "starting", then "ready <supervisor pid>".
"""

import os
import signal
import subprocess
import sys
import threading

import ray

from slackwater.actors.nodes.ray_nodes import RayNodes


@ray.remote(num_cpus=1)
class Stubborn:
    """Ignores SIGTERM, has a child in a session of its own, and a call that never returns."""

    def settle(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        return self.child.pid

    def hang(self) -> None:
        threading.Event().wait()


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(way: str) -> None:
    nodes = RayNodes.local(1, progress=lambda _: tell("starting"))
    assert nodes._local is not None
    assert nodes._local._supervisor is not None
    supervisor_pid = nodes._local._supervisor.pid
    actor = Stubborn.remote()  # type: ignore[attr-defined]
    ray.get(actor.settle.remote())
    hanging = actor.hang.remote()
    with nodes:
        tell(f"ready {supervisor_pid}")
        sys.stdin.readline()
        if way == "exception":
            raise RuntimeError("the driver's own fault")
        if way == "exit without closing":
            os._exit(0)
        if way == "wait":
            ray.get(hanging)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # our shell may have it ignored
    main(sys.argv[1])
