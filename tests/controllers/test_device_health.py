"""The health of devices in the status of pods, as a kubelet of 1.36 writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.informer import Name
from dryrack.controllers.pods.drivers import MESSAGE_BYTES_MAX, device_health
from dryrack.hardware import NO_FAULTS, device_annotation, faults_of

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def result(request: str, device: str, **more: str) -> Raw:
    return {"request": request, "driver": "d.example.com", "pool": "n", "device": device} | more


def claim(*results: Raw) -> Raw:
    status = {"allocation": {"devices": {"results": list(results)}}}
    return {"metadata": {"namespace": "default", "name": "made", "uid": "u"}, "status": status}


def pod(*uses: Raw) -> Raw:
    containers = [{"name": "main", "resources": {"claims": list(uses)}}, {"name": "other"}]
    claims = [{"name": "devices", "resourceClaimName": "made"}]
    return {
        "metadata": {"namespace": "default", "name": "pod"},
        "spec": {"nodeName": "n", "resourceClaims": claims, "containers": containers},
    }


def entries(*uses: Raw, results: tuple[Raw, ...]) -> list[tuple[str, list[str]]]:
    """Return the entries of the container with claims, and their devices."""
    there = {Name("default", "made"): claim(*results)}
    told = device_health(pod(*uses), there, NO_FAULTS)
    assert told.keys() <= {"main"}
    return [
        (
            each["name"],
            [it["resourceID"].removeprefix("d.example.com/n/") for it in each["resources"]],
        )
        for each in told.get("main", ())
    ]


def test_each_claim_of_a_container_has_an_entry() -> None:
    """An entry has the request if the container names one; alternatives belong to their request."""
    results = (result("a", "gpu-0"), result("b/small", "gpu-1"), result("b/small", "gpu-2"))

    assert entries({"name": "devices"}, results=results) == [
        (
            "claim:devices",
            ["gpu-0", "gpu-1", "gpu-2"],
        )
    ]
    assert entries(
        {"name": "devices", "request": "b"}, {"name": "devices", "request": "a"}, results=results
    ) == [
        ("claim:devices/b", ["gpu-1", "gpu-2"]),
        ("claim:devices/a", ["gpu-0"]),
    ]


def test_a_device_is_told_of_once() -> None:
    """Also if several requests of the claim have it, and a claim without devices not at all."""
    results = (result("a", "gpu-0"), result("b", "gpu-0"))

    assert entries({"name": "devices"}, results=results) == [("claim:devices", ["gpu-0"])]
    assert entries({"name": "devices"}, results=()) == []
    assert device_health(pod({"name": "devices"}), {}, NO_FAULTS) == {}


def test_a_device_is_named_by_its_cdi_device_where_there_is_one() -> None:
    """Each share of a device has its own."""
    results = (result("a", "gpu-0", shareID="s"), result("a", "gpu-0"), result("a", "gpu-1"))
    known = {
        ("d.example.com", "n", "gpu-0", "a", "s"): "example.com/gpu=s",
        ("d.example.com", "n", "gpu-0", "a", ""): "example.com/gpu=0",
    }
    there = {Name("default", "made"): claim(*results)}

    told = device_health(pod({"name": "devices"}), there, NO_FAULTS, lambda *_: known)

    (entry,) = told["main"]
    assert [each["resourceID"] for each in entry["resources"]] == [
        "example.com/gpu=s",
        "example.com/gpu=0",
        "d.example.com/n/gpu-1",
    ]


def test_a_message_is_no_longer_than_the_api_takes() -> None:
    """And is no half character."""
    faults = faults_of({device_annotation("gpu-0"): "unhealthy=x" + "ä" * 1000}, 0.0)
    there = {Name("default", "made"): claim(result("a", "gpu-0"))}

    told = device_health(pod({"name": "devices"}), there, faults)

    (resource,) = told["main"][0]["resources"]
    assert resource["message"] == "x" + "ä" * ((MESSAGE_BYTES_MAX - 4) // 2) + "..."
