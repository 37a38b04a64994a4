"""The log of a container that was never executed: its devices, whichever way it asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dryrack.controllers import log_of

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def claim(*results: tuple[str, str]) -> Raw:
    """A claim whose requests have these devices."""
    devices = [
        {"request": request, "driver": "x", "pool": "n", "device": device}
        for request, device in results
    ]
    return {"status": {"allocation": {"devices": {"results": devices}}}}


def test_a_container_sees_the_devices_of_its_claims_and_of_its_extended_resources() -> None:
    """By the mappings of its pod, and not those of other containers."""
    uses = [("c", "r-0"), ("other", "r-1"), ("c", "r-2")]
    mappings = [
        {"containerName": container, "requestName": request, "resourceName": "x/gpu"}
        for container, request in uses
    ]
    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "resourceClaims": [{"name": "own", "resourceClaimName": "by-name"}],
            "containers": [{"name": "c", "resources": {"claims": [{"name": "own"}]}}],
        },
        "status": {
            "containerStatuses": [{"name": "c", "state": {"running": {}}}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": "made",
                "requestMappings": mappings,
            },
        },
    }
    found = {
        "by-name": claim(("r", "a")),
        "made": claim(("r-0", "b"), ("r-1", "c"), ("r-2", "d")),
    }
    log = log_of(pod, "c", lambda namespace, name: found.get(name))

    assert [line for line in log.splitlines() if line.startswith("device:")] == [
        "device: x/n/a",
        "device: x/n/b",
        "device: x/n/d",
    ]


def log_of_command(*command: str) -> str:
    """Return the log of a pod with one variable, whose container has this command."""
    container = {"name": "c", "command": command, "env": [{"name": "A", "value": "1"}]}
    status = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}, "status": status}
    return log_of(pod, "c", lambda namespace, name: None)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["sh", "-c", "date; export"], "export A='1'"),
        (["sh", "-ec", "\n\n  export -p \n"], "export A='1'"),
        (["/bin/bash", "-c", "export&& sleep 9"], 'declare -x A="1"'),
        (["sh", "-c", "export B=2"], "env: A=1"),
        (["sh", "-c", "true | /usr/bin/env"], "A=1"),
        (["/bin/printenv"], "A=1"),
        (["env", "B=2", "sleep", "9"], "env: A=1"),
        (["sh", "-c", "echo env"], "env: A=1"),
    ],
)
def test_the_log_has_the_environment_as_the_command_prints_it(
    command: list[str], line: str
) -> None:
    """A command of its own that prints the environment is found anywhere in a script."""
    assert line in log_of_command(*command).splitlines()


@pytest.mark.parametrize(
    "script", ["\n" * 300_000, "export " * 50_000, ";" * 300_000, "cat \n" * 50_000 + "x"]
)
def test_the_log_of_a_long_script_takes_linear_time(script: str) -> None:
    """A script of separators and blanks alone is read once, not once for each of them."""
    assert "env: A=1" in log_of_command("sh", "-c", script)
