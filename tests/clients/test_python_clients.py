"""
The client libraries that people use, unmodified, on the embedded plane.

Each knows nothing of dryrack but a kubeconfig.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.clients.served import ServedPlane
from tests.realcluster.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# kubectl is built from Go modules. What the libraries warn about is theirs.
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

CLAIM = {
    "metadata": {"name": "mine"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
}
_SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlane]:
    """One plane with two virtual nodes for all libraries."""
    directory = tmp_path_factory.mktemp("plane")
    with ServedPlane(directory, ("--nodes", "2"), name="clients") as served:
        yield served
    # Some libraries leave sockets to the collector, which would complain in somebody else's test.
    gc.collect()


def test_the_official_client_creates_lists_watches_and_deletes(plane: ServedPlane) -> None:
    """`kubernetes`: typed objects, a watch, a patch and a deletion."""
    from kubernetes import client, config, watch

    load: Any = config.load_kube_config
    load(str(plane.kubeconfig))
    with client.ApiClient() as api:
        resources: Any = client.ResourceV1Api(api)
        core: Any = client.CoreV1Api(api)
        resources.create_namespaced_resource_claim("default", CLAIM)
        listed = resources.list_namespaced_resource_claim("default")
        resources.delete_namespaced_resource_claim("mine", "default")
        before = core.list_namespaced_config_map("default").metadata.resource_version
        core.create_namespaced_config_map("default", {"metadata": {"name": "watched"}})
        watcher: Any = watch
        stream = watcher.Watch().stream(
            core.list_namespaced_config_map,
            "default",
            resource_version=before,
            timeout_seconds=10,
        )
        event = next(iter(stream))
        nodes = core.list_node()

    assert [claim.metadata.name for claim in listed.items] == ["mine"]
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "watched")
    assert {node.metadata.name for node in nodes.items} == {"node-1", "node-2"}


def test_the_asynchronous_client_works(plane: ServedPlane) -> None:
    """`kubernetes_asyncio`: create and read back."""
    from kubernetes_asyncio import client, config

    async def run() -> Any:
        await config.load_kube_config(str(plane.kubeconfig))
        async with client.ApiClient() as api:
            core = client.CoreV1Api(api)
            body: Any = {"metadata": {"name": "by-asyncio"}, "data": {"a": "b"}}
            await core.create_namespaced_config_map("default", body)
            return await core.read_namespaced_config_map("by-asyncio", "default")

    assert asyncio.run(run()).data == {"a": "b"}


def test_kr8s_works(plane: ServedPlane) -> None:
    """`kr8s`: a pod is created, becomes ready on a virtual node, and is deleted."""
    import kr8s
    from kr8s.objects import Pod

    api: Any = kr8s.api(kubeconfig=str(plane.kubeconfig))
    manifest = {
        "metadata": {"name": "by-kr8s", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    pod: Any = Pod(manifest, api=api)
    pod.create()
    pod.wait("condition=Ready", timeout=_SECONDS_MAX)
    node = pod.spec.nodeName
    pod.delete()

    assert node in ("node-1", "node-2")


OPERATOR = """
import kopf

@kopf.on.create("configmaps", labels={"ask": "yes"})
def answer(patch, **_):
    patch.setdefault("data", {})["answer"] = "42"
"""


def test_a_kopf_operator_works(plane: ServedPlane, tmp_path: Path) -> None:
    """`kopf`: a small operator sees a ConfigMap and writes its answer into it."""
    (tmp_path / "answering.py").write_text(OPERATOR)
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", "default"]
    processes = Processes(tmp_path)
    processes.start(
        "kopf",
        [*command, str(tmp_path / "answering.py")],
        environment={"KUBECONFIG": str(plane.kubeconfig)},
    )
    try:
        question = {"metadata": {"name": "question", "labels": {"ask": "yes"}}}
        document = {"apiVersion": "v1", "kind": "ConfigMap", **question}
        plane.must("create", "-f", "-", stdin=json.dumps(document))
        goal = "--for=jsonpath={.data.answer}=42"
        done = plane.kubectl("wait", "configmap/question", goal, "--timeout=60s")
    finally:
        processes.stop_all()

    assert done.returncode == 0, processes.tail("kopf")
