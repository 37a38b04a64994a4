"""
The functions of `import dryrack`, for tests, notebooks and scripts.

Objects are dictionaries with the fields of a manifest; you can change them between two calls.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.kinds.documents import read, unwritten
from dryrack.kinds.releases import DEFAULT_RELEASE, Release, ReleaseError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw
    from dryrack.linter import Finding
    from dryrack.placement import Explanation, Settings, WhatIf, World


def load(*paths: str | Path) -> list[Raw]:
    """
    Return the objects in YAML or JSON files, in the order of the files.

    >>> import dryrack
    >>> [each["kind"] for each in dryrack.load("training.yaml")]
    ['ResourceClaimTemplate', 'Pod', 'ResourceClaim']
    """
    readings = [read(Path(path).read_bytes(), str(path)) for path in paths]
    problems = [str(problem) for reading in readings for problem in reading.problems]
    if problems:
        raise ContentError("\n".join(problems))
    return [document.raw for reading in readings for document in reading.documents]


def allocate(
    objects: Iterable[Raw], *, node: str = "", release: str = DEFAULT_RELEASE.value
) -> WhatIf:
    """
    Return the node and the devices of each claim and pod, or the reasons if it does not fit.

    With `node`, try only this node. `release` is the Kubernetes release whose allocator is used.

    >>> import dryrack
    >>> answer = dryrack.allocate(dryrack.load("nodes.yaml", "training.yaml"))
    >>> [(each.claim, each.node) for each in answer.given]
    [('default/trainer-gpus', 'rack-1'), ('default/three-anywhere', 'rack-2')]
    """
    from dryrack.placement import what_if_files

    return what_if_files(_world(objects), lambda: _settings(node, release))


def explain(
    objects: Iterable[Raw], claim: str, *, node: str = "", release: str = DEFAULT_RELEASE.value
) -> Explanation:
    """
    Return the devices of the claim NAMESPACE/NAME, or what each node lacks and what would help.

    >>> import dryrack
    >>> objects = dryrack.load("nodes.yaml", "training.yaml", "four-gpus.yaml")
    >>> dryrack.explain(objects, "default/four-gpus").helps[0]
    'lower the count of request gpus from 4 to 2'
    """
    from dryrack.placement import explain_claim

    return explain_claim(_world(objects), claim, _settings(node, release))


def lint(*paths: str | Path) -> tuple[Finding, ...]:
    """
    Return what a cluster would reject in files, or accept and never schedule.

    >>> import dryrack
    >>> dryrack.lint("nodes.yaml", "training.yaml")
    ()
    """
    from dryrack.linter import lint as lint_files
    from dryrack.scenario import own_problems

    files = [(str(path), Path(path).read_bytes()) for path in paths]
    return lint_files(files, own_problems)


@asynccontextmanager
async def connect(kubeconfig: str | Path = "", *, context: str = "") -> AsyncIterator[Client]:
    """
    Yield a client of a real cluster. Default: the cluster that kubectl uses.

    >>> import dryrack
    >>> from dryrack.client.endpoints import NODES
    >>> async def node_names():
    ...     async with dryrack.connect() as client:
    ...         return [each["metadata"]["name"] for each in (await client.list(NODES)).items]
    """
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import connection_of

    connection = connection_of(os.environ, kubeconfig=str(kubeconfig), context=context)
    async with connected(connection) as transport:
        yield Client(transport)


def _world(objects: Iterable[Raw]) -> World:
    from dryrack.cluster import load_catalogue
    from dryrack.placement import World, supply_devices
    from dryrack.placement.whatif.manifests import manifests

    found = manifests(unwritten(each, "objects") for each in objects)
    if found.problems:
        raise ContentError("\n".join(dict.fromkeys(map(str, found.problems))))
    typed = [each.object for each in found.objects]
    return World.of([*typed, *supply_devices(typed, load_catalogue).objects])


def _settings(node: str, release: str) -> Settings:
    from dryrack.cluster import SeededChance
    from dryrack.placement import Settings

    try:
        followed = Release.parse(release)
    except ReleaseError as error:
        raise ContentError(f"release {error}") from None
    return Settings(
        chance=SeededChance(),
        release=followed,
        node=node or None,
    )
