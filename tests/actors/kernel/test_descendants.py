"""Processes that code has started end with it: tried in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import psutil

CODE = """
import json, os, subprocess, sys
from slackwater.actors.kernel.descendants import end_descendants

print(json.dumps(end_descendants()))
ended = os.fork()
if not ended:
    os._exit(0)
deep = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
below = subprocess.Popen([sys.executable, "-c", deep], stdin=subprocess.PIPE)
os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
print(json.dumps([end_descendants(), end_descendants(), ended, below.pid]), flush=True)
input()
"""

DAEMON = """
import json, os, time
from slackwater.actors.kernel.descendants import adopt_orphans, end_descendants

adopt_orphans()
reads, writes = os.pipe()
middle = os.fork()
if not middle:
    os.setsid()
    daemon = os.fork()
    if not daemon:
        time.sleep(1000)
    os.write(writes, str(daemon).encode())
    os._exit(0)
os.waitpid(middle, 0)
print(json.dumps([int(os.read(reads, 16)), end_descendants(), end_descendants()]), flush=True)
input()
"""


def test_a_daemon_that_left_its_family_ends_too() -> None:
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-c", DAEMON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        daemon, found, again = json.loads(parent.stdout.readline())
        assert (found, again) == (1, 0)
        assert not psutil.pid_exists(daemon)
        parent.communicate("\n")


def test_children_and_theirs_end_and_none_stays_a_zombie() -> None:
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert json.loads(parent.stdout.readline()) == 0
        found, again, ended, below = json.loads(parent.stdout.readline())
        assert found >= 1
        assert again == 0
        assert not psutil.pid_exists(ended)
        assert not psutil.pid_exists(below)
        parent.communicate("\n")
