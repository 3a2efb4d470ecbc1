"""Probe a Ray head in a separate process; print one line of JSON.

Ray's client cannot do this in the driver. It writes warnings to the terminal, and waits 40 s for a
listener that is not Ray. It aborts the process when a required token is missing. Run as a file:
`python -P probe.py host:port`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

__all__ = ["ask"]

CLIENT = "ray://"
PROXY_S = 10.0


def ask(address: str) -> dict[str, Any]:
    """Return a cluster's facts, or {"problem", "detail"}.

    Facts are {"ray", "python", "nodes", "hosts", "is_open"}: versions, Ray's ids and addresses of
    its nodes, and whether it accepts peers without a token. Of a Ray client's proxy
    (`ray://host:port`) only {"is_open"}.

    A problem is "no token", "refused" (the token is missing or wrong there) or "failed".
    """
    from ray import _raylet  # noqa: PLC0415 only this process needs it
    from ray.exceptions import AuthenticationError  # noqa: PLC0415

    inside: Any = _raylet  # untyped
    needs_token = inside.get_authentication_mode() == inside.AuthenticationMode.TOKEN
    try:
        if needs_token and not inside.AuthenticationTokenLoader.instance().has_token():
            return {"problem": "no token", "detail": "no token was found"}
    except AuthenticationError as error:  # RAY_AUTH_TOKEN_PATH names no readable file
        return {"problem": "no token", "detail": str(error)}
    answer = _ask_either(address)
    if "problem" in answer:
        return answer
    if needs_token:  # would it also accept us without one?
        os.environ["RAY_AUTH_MODE"] = "disabled"
        inside.Config.initialize("")
        inside.AuthenticationTokenLoader.instance().reset_cache()
        return {**answer, "is_open": "problem" not in _ask_either(address)}
    return {**answer, "is_open": True}


def _ask_either(address: str) -> dict[str, Any]:
    if address.startswith(CLIENT):
        return _ask_proxy(address.removeprefix(CLIENT))
    return _ask_head(address)


def _ask_head(address: str) -> dict[str, Any]:
    from ray import _raylet  # noqa: PLC0415
    from ray._common.usage.usage_lib import get_cluster_metadata  # noqa: PLC0415
    from ray.exceptions import AuthenticationError  # noqa: PLC0415

    inside: Any = _raylet  # untyped
    try:
        client = inside.GcsClient(address=address)
        versions = get_cluster_metadata(client)
        nodes = client.get_all_node_info(timeout=5)
    except AuthenticationError as error:
        return {"problem": "refused", "detail": str(error)}
    except Exception as error:  # the kinds differ by release of Ray; the user reads the text
        return {"problem": "failed", "detail": f"{type(error).__name__}: {error}"}
    return {
        "ray": versions["ray_version"],
        "python": versions["python_version"],
        "nodes": [node_id.hex() for node_id in nodes],
        "hosts": sorted({node.node_manager_address for node in nodes.values()}),
    }


def _ask_proxy(address: str) -> dict[str, Any]:
    from ray._private import grpc_utils  # noqa: PLC0415
    from ray.core.generated import ray_client_pb2, ray_client_pb2_grpc  # noqa: PLC0415

    grpc = importlib.import_module("grpc")  # comes with ray[default], without types
    inside: Any = (grpc, grpc_utils, ray_client_pb2, ray_client_pb2_grpc)  # untyped
    errors, utils, words, calls = inside
    channel = utils.init_grpc_channel(address, options=[], asynchronous=False)
    question = words.ClusterInfoRequest(type=words.ClusterInfoType.PING)
    try:
        # A proxy requires a client id.
        calls.RayletDriverStub(channel).ClusterInfo(
            question, timeout=PROXY_S, metadata=[("client_id", "slackwater")]
        )
    except errors.RpcError as error:
        refused = error.code() == errors.StatusCode.UNAUTHENTICATED
        detail = f"{error.code().name}: {error.details()}"
        return {"problem": "refused" if refused else "failed", "detail": detail}
    return {}


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1])), flush=True)  # noqa: T201 the line is this program's answer
