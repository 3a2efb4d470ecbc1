"""Visit of a host over ssh, with the login of Ray's launcher."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from slackwater.actors.nodes import host_facts
from slackwater.actors.nodes.host_facts import MARK
from slackwater.doctor.clock import ask_clock

__all__ = ["SSH_PORT", "Login", "Visit", "visit"]

SSH_PORT = 22
REACH_S = 5.0
VISIT_S = 60.0
"""Longest time of a visit; a login shell and Python take about a second."""
PROGRAM = Path(host_facts.__file__)
# The program's source comes in first, after a line with its length in letters; then questions.
RUN = "exec python3 -c 'import sys; exec(sys.stdin.read(int(sys.stdin.readline())))'"
SSH_FAILED, NO_COMMAND = 255, 127  # exit codes of ssh and of a shell
NOT_REACHED = re.compile(r"ssh: (?:connect to host|Could not resolve hostname) .*?: (.*)")


@dataclass(frozen=True)
class Login:
    """Login to the hosts of a file."""

    user: str
    key: str | None = None
    proxy: str | None = None
    port: int = SSH_PORT

    def command(self, host: str) -> list[str]:
        """Return the ssh command that runs our program on a host."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": f"{REACH_S:.0f}",
            # As Ray's launcher does. We send only a program, which is not a secret.
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
        }
        if self.proxy is not None:
            options["ProxyCommand"] = self.proxy
        words = ["ssh", *(word for k, v in options.items() for word in ("-o", f"{k}={v}"))]
        if self.key is not None:
            words += ["-i", self.key, "-o", "IdentitiesOnly=yes"]
        shell = f"bash --login -i -c {shlex.quote(RUN)}"
        return [*words, "-p", str(self.port), f"{self.user}@{host}", shell]


@dataclass(frozen=True)
class Visit:
    """Result of a visit: facts of the host, or why it failed."""

    facts: dict[str, Any] | None = field(default=None)
    """Facts of `slackwater.actors.nodes.host_facts.host_facts`, run there."""
    failure: str = ""
    offset_ns: int = 0
    """Host's clock less ours."""
    error_ns: int = 0


def visit(host: str, login: Login) -> Visit:
    """Visit one host. Never raises for problems of the host."""
    if login.key is not None and not Path(login.key).is_file():
        return Visit(failure=f"auth.ssh_private_key: there is no file {login.key} here")
    try:
        ssh = subprocess.Popen(  # noqa: S603 the user's own ssh, no shell
            login.command(host),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return Visit(failure=f"ssh does not start here: {error.strerror}; install an ssh client")
    limit = threading.Timer(VISIT_S, ssh.kill)
    limit.daemon = True
    limit.start()
    try:
        with ssh:
            return _talk(ssh, login)
    finally:
        limit.cancel()


def _talk(ssh: subprocess.Popen[str], login: Login) -> Visit:
    assert ssh.stdin is not None
    assert ssh.stdout is not None
    assert ssh.stderr is not None
    source = PROGRAM.read_text(encoding="ascii")
    try:
        ssh.stdin.write(f"{len(source)}\n{source}")
        ssh.stdin.flush()
        line = _next_line(ssh.stdout)
        if line is None:
            ssh.stdin.close()
            return _failed(ssh, login, ssh.stderr.read())
        facts: dict[str, Any] = json.loads(line)
        best = ask_clock(lambda: _their_ns(ssh))
        ssh.stdin.close()
    except (OSError, ValueError) as error:
        ssh.kill()
        with contextlib.suppress(OSError):  # unread text stays in the buffer
            ssh.stdin.close()
        return _failed(ssh, login, ssh.stderr.read(), error)
    return Visit(facts, offset_ns=best.offset_ns, error_ns=best.error_ns(best.t4_ns))


def _their_ns(ssh: subprocess.Popen[str]) -> int:
    assert ssh.stdin is not None
    assert ssh.stdout is not None
    ssh.stdin.write("\n")
    ssh.stdin.flush()
    line = _next_line(ssh.stdout)
    if line is None:
        raise OSError("it hung up")
    return int(line)


def _next_line(output: IO[str]) -> str | None:
    # A login shell may print lines of its own first.
    for line in output:
        if line.startswith(MARK):
            return line.removeprefix(MARK)
    return None


def _failed(
    ssh: subprocess.Popen[str], login: Login, output: str, error: Exception | None = None
) -> Visit:
    code = ssh.wait()
    lines = [line for line in output.strip().splitlines() if not line.startswith("bash: ")]
    reason = lines[-1] if lines else str(error or f"exit code {code}")
    if code == SSH_FAILED:
        if not_reached := NOT_REACHED.match(reason):
            return Visit(
                failure=f"not reachable: {not_reached[1]} (TCP port {login.port}); look at the "
                "address, the network, and whether sshd runs there"
            )
        way = f"log in by hand first: ssh -p {login.port} {login.user}@HOST; the user and the key "
        return Visit(
            failure=f"ssh does not let us in: {reason}; {way}are those of auth in the file"
        )
    if code == NO_COMMAND:
        return Visit(
            failure="no python3 on the PATH of a login shell there: install Python 3.11 or 3.12, "
            "or put it on the PATH (~/.profile, ~/.bashrc)"
        )
    if code < 0:
        return Visit(failure=f"gave no answer within {VISIT_S:.0f} s: {reason}")
    return Visit(
        failure=f"our program does not run on its python3: {reason}; Ray needs 3.11 or 3.12"
    )
