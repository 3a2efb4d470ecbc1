"""Checks of a file for Ray's launcher, and of the hosts that it names."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from slackwater.actors.nodes.tokens import token_file
from slackwater.actors.nodes.versions import own_versions
from slackwater.doctor.findings import (
    Finding,
    judge_clock,
    judge_host,
    judge_ports,
    ok,
    problem,
    warning,
)
from slackwater.doctor.own_token import judge_own_token, judge_token_file
from slackwater.doctor.visit import SSH_PORT, Login, Visit, visit
from slackwater.runtime.shown import in_words

MOST_AT_ONCE = 32
TOKEN_PLACE = "~/.ray/auth_token"  # noqa: S105 a place, not a token


def examine_file(
    path: Path, *, environ: Mapping[str, str], ssh_port: int = SSH_PORT
) -> list[Finding]:
    """Return the findings about a launcher file, the token here, and the hosts.

    Args:
        path: the file for `ray up`.
        environ: environment of this process.
        ssh_port: port of the hosts' sshd.
    """
    config, findings = read_launcher_file(path)
    findings = [*findings, *judge_own_token(environ)]
    if config is None:
        return findings
    findings += _mounted_token(config, own=token_file(environ))
    provider = config["provider"]
    if provider["type"] != "local" or "head_ip" not in provider:
        return [
            *findings,
            ok(
                path.name,
                f"hosts come from {provider['type']!r}, so no host can be checked yet; "
                "once it is up: slackwater doctor --address ADDRESS",
            ),
        ]
    return findings + _examine_hosts(config, ssh_port)


def read_launcher_file(path: Path) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return the content of a launcher file, None if it is wrong, and findings."""
    yaml: Any = importlib.import_module("yaml")  # comes with Ray
    name = path.name
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        return None, [problem(name, f"{path} cannot be read: {error.strerror}")]
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        return None, [problem(name, f"is not YAML: {' '.join(str(error).split())}")]
    if not isinstance(config, dict):
        return None, [problem(name, "is not a launcher file: it has no keys, such as provider")]
    wrong = [*_schema_errors(config)] or [*_launcher_errors(config)]
    if wrong:
        return None, [problem(name, text) for text in wrong]
    return config, [ok(name, f"a launcher file that this Ray takes ({config['cluster_name']})")]


def _schema_errors(config: dict[str, Any]) -> Iterator[str]:
    """Yield the errors of a file by Ray's schema, each with its key."""
    autoscaler: Any = importlib.import_module("ray.autoscaler")
    jsonschema: Any = importlib.import_module("jsonschema")  # comes with Ray
    schema = json.loads(
        (Path(autoscaler.__file__).parent / "ray-schema.json").read_text(encoding="utf-8")
    )
    # Ray accepts it for local hosts, and replaces it by another key before its check.
    written = {key: value for key, value in config.items() if key != "min_workers"}
    for error in jsonschema.Draft7Validator(schema).iter_errors(written):
        key = ".".join(map(str, error.absolute_path)) or "at the top"
        yield f"{key}: {error.message}; Ray's launcher refuses the file: correct that key"


def _launcher_errors(config: dict[str, Any]) -> Iterator[str]:
    """Yield the errors of a file by Ray's launcher, beyond its schema."""
    inside: Any = importlib.import_module("ray.autoscaler._private.util")
    quiet = io.StringIO()  # the launcher also prints its errors
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            inside.validate_config(inside.prepare_config(config))
    except Exception as error:  # of many kinds: Ray's, click's, jsonschema's
        text = getattr(error, "message", None) or in_words(error)
        yield f"Ray's launcher refuses the file: {text}"


def _mounted_token(config: Mapping[str, Any], own: Path | None) -> Iterator[Finding]:
    """Yield the findings about the token that `ray up` copies to the hosts."""
    mounts = config.get("file_mounts") or {}
    if TOKEN_PLACE not in mounts:
        yield warning(
            "file_mounts",
            f"the file copies no token to its hosts: add {TOKEN_PLACE!r}: {TOKEN_PLACE}, and "
            "RAY_AUTH_MODE=token to its start commands, unless the hosts have one by other means",
        )
        return
    mounted = Path(str(mounts[TOKEN_PLACE])).expanduser()
    if mounted != own:
        yield judge_token_file("file_mounts", mounted)
    for key in ("head_start_ray_commands", "worker_start_ray_commands"):
        if not any("RAY_AUTH_MODE=token" in str(line) for line in config.get(key) or []):
            yield problem(
                key,
                "Ray is started without RAY_AUTH_MODE=token, so it would take anyone: export it "
                "in the line that starts Ray",
            )


def _examine_hosts(config: Mapping[str, Any], ssh_port: int) -> list[Finding]:
    provider, auth = config["provider"], config.get("auth") or {}
    key = auth.get("ssh_private_key")
    login = Login(
        user=auth.get("ssh_user", "ubuntu"),
        key=None if key is None else str(Path(key).expanduser()),
        proxy=auth.get("ssh_proxy_command"),
        port=ssh_port,
    )
    hosts = list(dict.fromkeys([provider["head_ip"], *provider["worker_ips"]]))
    with ThreadPoolExecutor(min(MOST_AT_ONCE, len(hosts))) as threads:
        visits = list(threads.map(lambda host: visit(host, login), hosts))
    mounts_token = TOKEN_PLACE in (config.get("file_mounts") or {})
    return [
        finding
        for host, result in zip(hosts, visits, strict=True)
        for finding in _judge(host, result, is_head=host == hosts[0], mounts_token=mounts_token)
    ] + _differences(hosts, visits)


def _judge(host: str, result: Visit, *, is_head: bool, mounts_token: bool) -> Iterator[Finding]:
    about = f"{host} (head)" if is_head else host
    if result.facts is None:
        yield problem(about, result.failure)
        return
    facts = result.facts
    yield ok(about, f"ssh lets us in, as {facts['host']}")
    yield from judge_host(about, facts, ours=own_versions(), is_running=False)
    if is_head:
        yield from judge_ports(about, facts)
    yield judge_clock(about, result.offset_ns, result.error_ns)
    mode = facts["token_mode"]
    if mode is None:
        yield (ok if mounts_token else problem)(
            about,
            f"no token in {TOKEN_PLACE} yet: `ray up` copies it there"
            if mounts_token
            else f"no token in {TOKEN_PLACE}, and the file copies none: name it in file_mounts",
        )
    elif mode & 0o077:
        yield problem(
            about,
            f"{TOKEN_PLACE} has mode {mode:04o}, so others on that host can have it: chmod 600 it "
            "there (and in setup_commands)",
        )
    else:
        yield ok(about, "its token is for its owner alone")


def _differences(hosts: Sequence[str], visits: Sequence[Visit]) -> list[Finding]:
    """Return a finding for each fact that differs between hosts."""
    findings = []
    for name in own_versions():
        have: dict[str, list[str]] = {}
        for host, result in zip(hosts, visits, strict=True):
            if result.facts is not None and result.facts["versions"].get(name):
                have.setdefault(result.facts["versions"][name], []).append(host)
        if len(have) > 1:
            versions = "; ".join(f"{version} on {', '.join(on)}" for version, on in have.items())
            findings.append(problem("all hosts", f"{name} differs between them: {versions}"))
    return findings
