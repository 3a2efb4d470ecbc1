"""Start the local Ray nodes, outlive their driver, and take them down.

```
driver ── pipe ──▶ supervisor ──▶ gcs_server, raylets ──▶ workers, Spark's JVMs, …
```

The supervisor is a session leader, so Ctrl-C in the terminal does not reach it. It is a child
subreaper, so orphans of a dying process become its own children. So it can see that no process is
left: it has no child. It takes everything down as soon as the pipe closes, which the system does
however the driver dies. If the supervisor itself is killed, the system kills gcs_server and raylets
(PR_SET_PDEATHSIG), and workers die with their raylet.

It starts with Ray imported, then replaces itself by a bare Python of 9 MB that only waits.
Run as a file: `python -P local_supervisor.py start <json>` and `python -I -S local_supervisor.py
supervise <json>`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shlex
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["main"]

LOOPBACK = "127.0.0.1"  # Ray binds to this interface alone only for this spelling
PR_SET_CHILD_SUBREAPER = 36
LOOK_S = 1.0  # between two looks at the parent, if a child of the driver holds the pipe open
TAKE_DOWN_S = 20.0  # for killed processes to be gone; only a stuck disk takes that long

# Ray's own settings, given to gcs_server and handed on by it to raylets, workers and driver.
SYSTEM_CONFIG = {
    "worker_niceness": 0,  # the default, 15, gives way to any other process
    "prestart_worker_first_driver": False,  # else one idle worker of 120 MB per CPU
    "num_workers_soft_limit": 1,  # idle workers kept per node; the default is one per CPU
    "enable_metrics_collection": False,  # no process collects them
    "event_stats": False,
    "task_events_report_interval_ms": 0,  # else gcs_server keeps up to 100,000 past calls
    # Longer answers (100 kB is Ray's default) lie in the raylet's store; shorter ones, such as
    # slots' reports, travel from process to process. Ray ends a process in mid-line that reads an
    # answer there when the raylet is gone: the user's process.
    "max_direct_call_object_size": 2**20,
}

AGENTS = {  # {argument of raylet: file that stands in for that agent of Ray's}
    "--dashboard_agent_command": "stub_agent.py",
    "--runtime_env_agent_command": "late_agent.py",
}
WORKERS = "--python_worker_command"
"""Argument of raylet: the command of a worker."""
AGENTS_SWITCH = "SLACKWATER_AGENTS"
"""Environment variable: with `ray`, nodes have Ray's own agents, and workers load their modules
themselves, should a new Ray refuse ours."""


def main(arguments: list[str]) -> None:
    """Run one of the two phases, `start` or `supervise`, on the plan in `arguments[1]`."""
    phase, plan = arguments[0], json.loads(arguments[1])
    signal.signal(signal.SIGTERM, lambda *_: take_down_and_exit(plan))
    if phase == "supervise":
        wait_for_the_driver(plan, is_bare=True)
        take_down_and_exit(plan)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
    threading.Thread(target=watch_while_starting, args=(plan,), daemon=True).start()
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray's prints go to our log file, not into the reports
    try:
        ready = start_nodes(plan, reports)
    except Exception as error:
        reports.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        take_down_and_exit(plan, status=1)
    reports.write(json.dumps(ready) + "\n")
    go_on_bare(plan)


def start_nodes(plan: dict[str, Any], reports: Any) -> dict[str, Any]:
    """Start gcs_server and every node; return the head's address and the nodes' ids by name."""
    reports.write(json.dumps({"step": "loading Ray"}) + "\n")
    import ray._private.node  # noqa: PLC0415 the supervise phase has no Ray

    inside: Any = ray._private  # untyped

    class Node(ray._private.node.Node):
        def start_api_server(self, **_: Any) -> None:
            """Start no dashboard: it would take 90 MB and most of the starting time."""

    start_process = inside.services.start_ray_process

    def start_with_ours(command: list[str], *rest: Any, **options: Any) -> Any:
        ours = [_with_warm_workers(_with_light_agents(w), plan["folder"]) for w in command]
        return start_process(ours, *rest, **options)

    if os.environ.get(AGENTS_SWITCH) != "ray":
        inside.services.start_ray_process = start_with_ours
    # By default each node offers the whole machine's memory; together they may offer it once.
    memory_bytes = inside.utils.estimate_available_memory() // plan["count"]
    head: Any = None
    ids: dict[str, str] = {}  # {node name: Ray node id}
    for number in range(1, plan["count"] + 1):
        name = f"node-{number}"
        reports.write(json.dumps({"step": f"starting {name} of {plan['count']}"}) + "\n")
        started = Node(
            inside.parameter.RayParams(
                node_ip_address=LOOPBACK,
                node_name=name,
                # Its name is a resource for placement, as in RayDP.
                resources={name: plan["cpus_per_node"], **plan["resources"]},
                num_cpus=plan["cpus_per_node"],
                num_gpus=0,
                memory=memory_bytes,
                object_store_memory=plan["object_store_bytes"],
                temp_dir=plan["folder"] + "/ray",  # Ray makes it 0777; ours around it stays 0700
                min_worker_port=0,
                max_worker_port=0,
                include_dashboard=False,
                include_log_monitor=False,
                no_monitor=True,  # nothing scales here
                gcs_address=head.gcs_address if head else None,
                _system_config=None if head else SYSTEM_CONFIG,
            ),
            head=head is None,
            shutdown_at_exit=False,  # exec is not an exit; the supervisor takes nodes down
            spawn_reaper=True,  # which on Linux means PR_SET_PDEATHSIG
        )
        head = head or started
        ids[name] = started.node_id
    return {"address": head.gcs_address, "ids": ids}


def _with_light_agents(word: str) -> str:
    """Return an argument of raylet, with Ray's two agents replaced by ours."""
    option, _, command = word.partition("=")
    words = shlex.split(command) if option in AGENTS else []
    if option == "--dashboard_agent_command":
        words = [w for w in words if w.startswith(("--session-dir=", "--node-id="))]
    elif option == "--runtime_env_agent_command":  # Ray's agent, after Python and its options
        words = words[next(n for n, w in enumerate(words) if w.endswith(".py")) :]
    else:
        return word
    agent = Path(__file__).with_name(AGENTS[option])
    return f"{option}={shlex.join([sys.executable, '-I', '-S', str(agent), *words])}"


def _with_warm_workers(word: str, folder: str) -> str:
    """Return an argument of raylet, with our file before that of a worker.

    Ray drops its second word, a file for environments of workers, where a worker has none.
    """
    option, _, command = word.partition("=")
    if option != WORKERS:
        return word
    python, sets_up, *words = shlex.split(command)
    ours = ["-I", "-S", str(Path(__file__).with_name("warm_workers.py")), folder]
    return f"{option}={shlex.join([python, sets_up, *ours, *words])}"


def watch_while_starting(plan: dict[str, Any]) -> None:
    """Take down the nodes if the driver ends before all are up.

    Bare, since Ray holds the interpreter while it waits for gcs_server: if this thread killed
    gcs_server, it could run its next line only 15 s later, when Ray has given up.
    """
    wait_for_the_driver(plan)
    go_on_bare(plan)


def go_on_bare(plan: dict[str, Any]) -> NoReturn:
    """Replace this process by the `supervise` phase, from any thread.

    exec keeps pid, children, pipe and the subreaper mark, and drops Ray's 90 MB and all threads.
    """
    bare = [sys.executable, "-I", "-S", __file__, "supervise", json.dumps(plan)]
    os.execv(sys.executable, bare)  # noqa: S606 no shell is meant


def wait_for_the_driver(plan: dict[str, Any], *, is_bare: bool = False) -> None:
    """Return when the driver has closed its end of the pipe, or has ended."""
    while os.getppid() == plan["driver_pid"]:
        if select.select([0], [], [], LOOK_S)[0] and not os.read(0, 64):
            return
        if is_bare:  # children of workers that have ended are ours; Ray collects its own
            has_children()


def take_down_and_exit(plan: dict[str, Any], *, status: int = 0) -> None:
    """Kill every descendant, remove the temporary folder, and end this process."""
    give_up_s = time.monotonic() + TAKE_DOWN_S
    while has_children() and time.monotonic() < give_up_s:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)  # for the system to hand us the orphans
    shutil.rmtree(plan["folder"], ignore_errors=True)
    os._exit(status)


def has_children() -> bool:
    """Collect dead children; return whether a child is left. A subreaper's orphans are children."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def descendants(root: int) -> list[int]:
    """Return the pids of all descendants of `root`, parents first."""
    children: dict[int, list[int]] = {}  # {pid: pids of its children}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # the process ended meanwhile
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    pids = [root]
    for pid in pids:
        pids.extend(children.get(pid, []))
    return pids[1:]


if __name__ == "__main__":
    main(sys.argv[1:])
