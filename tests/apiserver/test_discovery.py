"""Discovery against what a real server was recorded to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.visits import json_of, plain_registry, visited

from dryrack.apiserver.pages.discovery import DiscoveryPages
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategy import Strategy
from dryrack.apiserver.versions import version_order
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import Release
from dryrack.kinds.rules.kind_rules import KindRules

_RECORDED = Path(__file__).parents[1] / "parity" / "answers" / "discovery.json"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def _recorded(step: str) -> Any:
    return next(a for a in json.loads(_RECORDED.read_text()) if a["step"] == step)["body"]


@pytest.mark.parametrize(
    ("step", "path"),
    [
        ("core resources", "/api/v1"),
        ("its resources", "/apis/resource.k8s.io/v1"),
        ("its older resources", "/apis/resource.k8s.io/v1beta1"),
    ],
)
def test_every_resource_is_told_as_a_real_server_tells_it(step: str, path: str) -> None:
    """Each entry that we list equals the recorded one, hash and all; the order is the same."""
    recorded = _recorded(step)
    told = json_of(visited(DiscoveryPages(plain_registry()), path))
    names = [entry["name"] for entry in told["resources"]]

    assert told["resources"] == [e for e in recorded["resources"] if e["name"] in names]
    assert {k: v for k, v in told.items() if k != "resources"} == {
        k: v for k, v in recorded.items() if k != "resources"
    }


def test_a_group_is_told_as_a_real_server_tells_it() -> None:
    """The versions of a group are in order of preference."""
    told = json_of(visited(DiscoveryPages(plain_registry()), "/apis/resource.k8s.io"))

    assert told == _recorded("the group")


def test_aggregated_discovery_names_every_builtin_once() -> None:
    """The two aggregated documents together hold all that the registry holds."""
    pages = DiscoveryPages(plain_registry())
    found = []
    for path in ("/api", "/apis"):
        for group in json_of(visited(pages, path, accept=_AGGREGATED))["items"]:
            for version in group["versions"]:
                found += [
                    (group["metadata"].get("name", ""), version["version"], entry["resource"])
                    for entry in version["resources"]
                ]

    assert sorted(found) == sorted(
        (b.group, b.version, b.plural) for b in builtin_kinds(Release.V1_36)
    )


def test_a_client_that_has_the_document_is_not_sent_it_again() -> None:
    """The entity tag of an answer, sent back, is answered with 304 until something changes."""
    registry = plain_registry()
    pages = DiscoveryPages(registry)
    first = visited(pages, "/apis", accept=_AGGREGATED)
    tag = first.header("etag") or ""

    assert visited(pages, "/apis", accept=_AGGREGATED, if_none_match=tag).status == 304
    registry.add(_gadget())
    assert visited(pages, "/apis", accept=_AGGREGATED, if_none_match=tag).status == 200


def _gadget() -> Resource:
    return Resource(
        group="example.com",
        version="v1",
        kind="Gadget",
        plural="gadgets",
        namespaced=True,
        strategy=Strategy(KindRules(namespaced=True)),
    )


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_custom_groups_come_last(release: Release) -> None:
    """A custom group never takes a short name from a built-in one."""
    registry = plain_registry(release)
    registry.add(_gadget())
    told = json_of(visited(DiscoveryPages(registry), "/apis"))

    assert told["groups"][-1]["name"] == "example.com"


def test_the_old_documents_are_for_those_who_ask_for_nothing_else() -> None:
    """A client that does not prefer the aggregated type gets the old documents."""
    pages = DiscoveryPages(plain_registry())

    assert json_of(visited(pages, "/apis", accept="application/json"))["kind"] == "APIGroupList"
    assert json_of(visited(pages, "/api"))["kind"] == "APIVersions"


def test_the_address_of_the_server_is_the_one_that_led_there() -> None:
    """The port in the document is one at which the server listens."""
    told = json_of(visited(DiscoveryPages(plain_registry()), "/api", host="127.0.0.1:41234"))

    assert told["serverAddressByClientCIDRs"] == [
        {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:41234"}
    ]


def test_versions_are_ordered_by_stability_and_age() -> None:
    """Stable before beta before alpha, newer before older, strange names last."""
    versions = ["foo1", "v1alpha2", "v1", "v2beta1", "v10", "v1beta2", "v2", "bar"]

    assert sorted(versions, key=version_order) == [
        "v10",
        "v2",
        "v1",
        "v2beta1",
        "v1beta2",
        "v1alpha2",
        "bar",
        "foo1",
    ]
