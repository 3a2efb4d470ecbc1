"""Stand in for Ray's runtime env agent until its first call: 8 MB, not 75.

A raylet does not start without that agent, and dies with it. But it calls the agent only for a task
or an actor with a runtime_env, which ours have not. This process listens at a port, writes it where
the raylet looks for it, and waits. At the first call it becomes Ray's own agent, which finds the
call where it was left. It ends with its raylet. The raylet runs it as a file, with the path of
Ray's agent and its arguments.
"""

from __future__ import annotations

import importlib
import os
import runpy
import select
import socket
import sys
from pathlib import Path
from typing import Any

__all__ = ["PORT", "main"]

PORT = "runtime_env_agent_port"
BECOME = "--listening="
BACKLOG = 128


def main(arguments: list[str]) -> None:
    """Wait for a call; or, given a listening socket, run Ray's agent on it.

    Args:
        arguments: arguments of the wait, `AGENT --node-id=… --session-dir=… --node-ip-address=… …`;
            for the agent, `--listening=FD AGENT …`.
    """
    if arguments[0].startswith(BECOME):
        be_the_agent(int(arguments[0].removeprefix(BECOME)), arguments[1:])
    else:
        wait_for_a_call(arguments)


def wait_for_a_call(arguments: list[str]) -> None:
    """Listen, write down the port, and become Ray's agent at the first connection."""
    options = dict(word[2:].split("=", 1) for word in arguments if word.startswith("--"))
    port = int(options["runtime-env-agent-port"] or 0)
    candidates = socket.getaddrinfo(options["node-ip-address"], port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = candidates[0]
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(address)
    listening.listen(BACKLOG)
    path = Path(options["session-dir"], f"{PORT}_{options['node-id']}")
    part = path.with_name(path.name + ".part")
    part.write_text(str(listening.getsockname()[1]), encoding="ascii")
    part.replace(path)  # the raylet never sees half a file
    called, _, _ = select.select([0, listening.fileno()], [], [])
    if 0 in called:  # the raylet held the other end, and is gone
        return
    listening.set_inheritable(True)
    become = f"{BECOME}{listening.fileno()}"
    ours = [sys.executable, os.path.abspath(__file__), become]
    os.execv(ours[0], [*ours, *arguments])  # noqa: S606 (no shell is what we want)


def be_the_agent(descriptor: int, arguments: list[str]) -> None:
    """Run Ray's agent on the socket that was called before the agent ran."""
    agent = Path(arguments[0])
    sys.path.insert(0, str(agent.with_name("thirdparty_files")))  # folder of its aiohttp
    web: Any = importlib.import_module("aiohttp.web")
    listening = socket.socket(fileno=descriptor)
    run_app = web.run_app

    def run_here(app: Any, *, sock: socket.socket, **rest: Any) -> None:
        sock.close()  # the one that it has bound
        run_app(app, sock=listening, **rest)

    web.run_app = run_here
    sys.argv = [str(agent), *(f"--{_any_port(word)}" for word in arguments[1:])]
    runpy.run_path(str(agent), run_name="__main__")


def _any_port(word: str) -> str:
    # Ray's agent binds a port of its own, which we then close.
    name = word.removeprefix("--")
    return "runtime-env-agent-port=0" if name.startswith("runtime-env-agent-port=") else name


if __name__ == "__main__":
    main(sys.argv[1:])
