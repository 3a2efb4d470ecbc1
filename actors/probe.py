"""Asks a Ray head what it is, in a process of its own: prints one line of JSON.

Ray's client cannot do this in the driver: it writes warnings to the terminal, waits 40 s for a
listener that is not Ray, and aborts the process when a token is wanted and none is found.
Run as a file: `python -P probe.py host:port`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["ask"]


def ask(address: str) -> dict[str, Any]:
    """Return {"ray", "python", "nodes", "is_open"} of the cluster, or {"problem", "detail"}.

    The problem is "no token", "refused" (the token is missing or wrong there) or "failed".
    """
    from ray import _raylet  # noqa: PLC0415 needs them
    from ray._common.usage.usage_lib import get_cluster_metadata  # noqa: PLC0415 only this process
    from ray.exceptions import AuthenticationError  # noqa: PLC0415

    inside: Any = _raylet  # untyped
    needs_token = inside.get_authentication_mode() == inside.AuthenticationMode.TOKEN
    try:
        if needs_token and not inside.AuthenticationTokenLoader.instance().has_token():
            return {"problem": "no token", "detail": "no token was found"}
    except AuthenticationError as error:  # RAY_AUTH_TOKEN_PATH names no readable file
        return {"problem": "no token", "detail": str(error)}
    try:
        client = inside.GcsClient(address=address)
        versions = get_cluster_metadata(client)
        nodes = [node_id.hex() for node_id in client.get_all_node_info(timeout=5)]
    except AuthenticationError as error:
        return {"problem": "refused", "detail": str(error)}
    except Exception as error:  # Ray's own kinds differ by release; the text goes to the user
        return {"problem": "failed", "detail": f"{type(error).__name__}: {error}"}
    return {
        "ray": versions["ray_version"],
        "python": versions["python_version"],
        "nodes": nodes,
        "is_open": not needs_token,  # it took us without one
    }


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1])), flush=True)  # noqa: T201 the line is this program's answer
