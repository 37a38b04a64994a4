"""
What a small cluster does, as scenes that play on any: embedded, or on a real API server.

A scene writes as a person would and waits, by watching, until the controllers have answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    SLICES,
    STATEFUL_SETS,
    TEMPLATES,
    VOLUME_CLAIMS,
    Endpoint,
)
from dryrack.client.informer import Name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


# A cluster that has not answered by then will not; a loaded machine may take a while.
ANSWER_SECONDS_MAX = 30.0

DRIVER = "gpu.example.com"
POD_SPEC: Raw = {"containers": [{"name": "main", "image": "example.com/main"}]}


async def pods_of(client: Client, owner: Name) -> list[Raw]:
    """The pods of an owner, by name."""
    listing = await client.list(PODS, Selection(namespace=owner.namespace))
    return [pod for pod in listing.items if _is_owned(pod, owner.name)]


def _is_owned(pod: Raw, name: str) -> bool:
    return any(each["name"] == name for each in pod["metadata"].get("ownerReferences") or ())


async def settled(
    client: Client,
    endpoint: Endpoint,
    is_so: Callable[[Mapping[Name, Raw]], bool],
    *,
    namespace: str = "",
) -> Mapping[Name, Raw]:
    """Waits until something is so for all objects of a kind, and answers with them."""
    selection = Selection(namespace=namespace)
    listing = await client.list(endpoint, selection)
    known = {_name(each): each for each in listing.items}
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            async with client.watch(endpoint, selection, revision=listing.revision) as events:
                if is_so(known):
                    return known
                async for event in events:
                    if event.type == "DELETED":
                        known.pop(_name(event.object), None)
                    elif event.type != "BOOKMARK":
                        known[_name(event.object)] = event.object
                    if is_so(known):
                        return known
    except TimeoutError:
        shown = {"/".join(name): obj.get("status") for name, obj in known.items()}
        raise AssertionError(f"{endpoint.resource} did not get there: {shown}") from None
    raise AssertionError(f"the watch of {endpoint.resource} ended")


def _name(obj: Raw) -> Name:
    return Name(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


async def settled_one(
    client: Client,
    endpoint: Endpoint,
    name: Name,
    is_so: Callable[[Raw | None], bool],
) -> Raw | None:
    """Waits until something is so for one object; None: it is not there."""
    known = await settled(
        client, endpoint, lambda every: is_so(every.get(name)), namespace=name.namespace
    )
    return known.get(name)


def phase(pod: Raw | None) -> str:
    return str((pod or {}).get("status", {}).get("phase", ""))


def is_true(obj: Raw | None, kind: str) -> bool:
    conditions = (obj or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


async def make_namespace(client: Client, name: str) -> None:
    """A namespace in which pods can be made."""
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    await settled_one(client, SERVICE_ACCOUNTS, Name(name, "default"), lambda it: it is not None)


async def make_node(client: Client, name: str, *, devices: int = 0) -> None:
    """A virtual node with devices, Ready and free of taints."""
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await client.create(NODES, {"metadata": metadata})
    if devices:
        await client.create(SLICES, slice_of(name, devices))
    await settled_one(
        client,
        NODES,
        Name("", name),
        lambda node: is_true(node, "Ready") and not (node or {}).get("spec", {}).get("taints"),
    )


def slice_of(node: str, devices: int) -> Raw:
    return {
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


async def make_class(client: Client, name: str = "gpu") -> None:
    expression = f"device.driver == '{DRIVER}'"
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    await client.create(CLASSES, {"metadata": {"name": name}, "spec": spec})


def template_in(namespace: str) -> Raw:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return {
        "metadata": {"name": "gpu", "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def pod_with_claim(name: Name, **metadata: Any) -> Raw:
    container = POD_SPEC["containers"][0] | {"resources": {"claims": [{"name": "gpu"}]}}
    return {
        "metadata": {"name": name.name, "namespace": name.namespace, **metadata},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "containers": [container],
        },
    }


async def claim_comes_and_goes(client: Client, namespace: str, node: str) -> Raw:
    """
    A pod with a claim from a template runs, and after its deletion nothing is left of it.

    Answers with the claim as it was in use.
    """
    name = Name(namespace, "worker")
    await client.create(TEMPLATES, template_in(namespace))
    await client.create(PODS, pod_with_claim(name))
    pod = await settled_one(client, PODS, name, lambda it: is_true(it, "Ready"))
    assert pod is not None
    assert pod["spec"]["nodeName"] == node
    told = pod["status"]["resourceClaimStatuses"]
    claim = await client.get(CLAIMS, told[0]["resourceClaimName"], namespace)
    assert told == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
    assert claim["status"]["reservedFor"][0]["uid"] == pod["metadata"]["uid"]
    await client.delete(PODS, name.name, namespace=namespace)
    await settled_one(client, PODS, name, lambda it: it is None)
    await settled(client, CLAIMS, lambda claims: not claims, namespace=namespace)
    return claim


def deployment(name: Name, *, replicas: int, image: str = "a", **spec: Any) -> Raw:
    labels = {"app": name.name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    return {
        "metadata": {"name": name.name, "namespace": name.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


def is_rolled_out(replicas: int) -> Callable[[Raw | None], bool]:
    """Return True if `kubectl rollout status` would end."""

    def check(found: Raw | None) -> bool:
        if found is None:
            return False
        status = found.get("status", {})
        counts = [status.get(f"{word}eplicas", 0) for word in ("r", "updatedR", "availableR")]
        seen = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 0)
        return seen and counts == [replicas] * 3

    return check


async def deployment_rolls(client: Client, namespace: str) -> None:
    """A deployment comes up, takes a new template, goes back, and is gone with all its pods."""
    name = Name(namespace, "web")
    await client.create(DEPLOYMENTS, deployment(name, replicas=3))
    await settled_one(client, DEPLOYMENTS, name, is_rolled_out(3))
    for number, image in enumerate(("b", "a"), 2):
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
        await client.patch(DEPLOYMENTS, "web", patch, namespace=namespace)
        done = await settled_one(client, DEPLOYMENTS, name, is_rolled_out(3))
        assert done is not None
        revision = done["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        assert revision == str(number)
    sets = (await client.list(REPLICA_SETS, Selection(namespace=namespace))).items
    assert sorted(each["spec"]["replicas"] for each in sets) == [0, 3]
    await client.delete(DEPLOYMENTS, "web", namespace=namespace, propagation="Foreground")
    await settled_one(client, DEPLOYMENTS, name, lambda it: it is None)
    await settled(client, REPLICA_SETS, lambda every: not every, namespace=namespace)
    await settled(client, PODS, lambda every: not every, namespace=namespace)


async def deployment_is_stuck(client: Client, namespace: str) -> Name:
    """Pods whose account is not there are refused; the deployment says so, and why."""
    name = Name(namespace, "stuck")
    made = deployment(name, replicas=1)
    made["spec"]["template"]["spec"] = POD_SPEC | {"serviceAccountName": "late"}
    await client.create(DEPLOYMENTS, made)
    found = await settled_one(client, DEPLOYMENTS, name, lambda it: is_true(it, "ReplicaFailure"))
    assert found is not None
    assert reason_of(found, "ReplicaFailure") == "FailedCreate"
    return name


async def deployment_comes_loose(client: Client, namespace: str) -> None:
    """The controller continues when the account exists, and removes the failure."""
    name = await deployment_is_stuck(client, namespace)
    account = {"metadata": {"name": "late", "namespace": namespace}}
    await client.create(SERVICE_ACCOUNTS, account)
    rolled_out = is_rolled_out(1)

    def is_well(found: Raw | None) -> bool:
        return rolled_out(found) and not is_true(found, "ReplicaFailure")

    await settled_one(client, DEPLOYMENTS, name, is_well)


def job(name: Name, **spec: Any) -> Raw:
    annotations = {"dryrack.dev/run-seconds": "0"}
    pod = POD_SPEC | {"restartPolicy": "Never"}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return {
        "metadata": {"name": name.name, "namespace": name.namespace},
        "spec": {"template": template} | spec,
    }


async def job_completes(client: Client, namespace: str) -> Raw:
    """A job runs its pods to the number of completions; answers with the finished job."""
    name = Name(namespace, "sum")
    await client.create(JOBS, job(name, completions=5, parallelism=2))
    done = await settled_one(client, JOBS, name, lambda it: is_true(it, "Complete"))
    assert done is not None
    assert done["status"]["succeeded"] == 5
    assert not done["status"].get("failed")
    pods = await pods_of(client, name)
    assert [phase(pod) for pod in pods] == ["Succeeded"] * 5
    return done


def failing_job(name: Name, code: int, **spec: Any) -> Raw:
    """All of its pods exit with a code."""
    made = job(name, **spec)
    made["spec"]["template"]["metadata"]["annotations"]["dryrack.dev/exit-code"] = str(code)
    return made


async def job_fails(client: Client, namespace: str) -> Raw:
    """A job whose pods fail ends when its back-off limit is reached."""
    name = Name(namespace, "broken")
    await client.create(JOBS, failing_job(name, 7, backoffLimit=0))
    done = await settled_one(client, JOBS, name, lambda it: is_true(it, "Failed"))
    assert done is not None
    assert done["status"]["failed"] == 1
    return done


def reason_of(obj: Raw, kind: str) -> str:
    conditions = obj["status"]["conditions"]
    return str(next(each["reason"] for each in conditions if each["type"] == kind))


async def job_fails_by_its_policy(client: Client, namespace: str) -> Raw:
    """One pod with a fatal exit code ends a job that could have tried again."""
    name = Name(namespace, "fatal")
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    policy = {"rules": [{"action": "Count", "onPodConditions": [_DISRUPTED]}, rule]}
    await client.create(JOBS, failing_job(name, 42, podFailurePolicy=policy))
    done = await settled_one(client, JOBS, name, lambda it: is_true(it, "Failed"))
    assert done is not None
    assert reason_of(done, "Failed") == "PodFailurePolicy"
    assert done["status"]["failed"] == 1
    return done


_DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


async def job_gives_up_indexes(client: Client, namespace: str) -> Raw:
    """Each index fails for itself; when all are done or given up the job has failed."""
    name = Name(namespace, "indexes")
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    await client.create(JOBS, failing_job(name, 1, backoffLimitPerIndex=0, **spec))
    done = await settled_one(client, JOBS, name, lambda it: is_true(it, "Failed"))
    assert done is not None
    assert reason_of(done, "Failed") == "FailedIndexes"
    assert done["status"]["failedIndexes"] == "0-2"
    return done


async def job_has_enough(client: Client, namespace: str) -> Raw:
    """A job that has succeeded by its policy leaves the rest undone."""
    name = Name(namespace, "enough")
    spec = {"completionMode": "Indexed", "completions": 5, "parallelism": 1}
    policy = {"rules": [{"succeededIndexes": "3-4"}, {"succeededCount": 2}]}
    await client.create(JOBS, job(name, successPolicy=policy, **spec))
    done = await settled_one(client, JOBS, name, lambda it: is_true(it, "Complete"))
    assert done is not None
    assert reason_of(done, "Complete") == "SuccessPolicy"
    assert done["status"]["completedIndexes"] == "0,1"
    return done


def _owned(every: Mapping[Name, Raw], owner: str) -> list[Name]:
    return [name for name, pod in sorted(every.items()) if _is_owned(pod, owner)]


async def stateful_set_keeps_order(client: Client, namespace: str) -> None:
    """Pods of a stateful set come one after the other, and its last goes first."""
    name = Name(namespace, "db")
    wanted = deployment(name, replicas=3) | {}
    wanted["spec"]["serviceName"] = "db"
    await client.create(STATEFUL_SETS, wanted)
    await settled_one(client, STATEFUL_SETS, name, is_rolled_out(3))
    pods = await pods_of(client, name)
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1", "db-2"]
    made = [int(pod["metadata"]["resourceVersion"]) for pod in pods]
    assert made == sorted(made)
    await client.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}}, namespace=namespace)
    left = await settled(
        client, PODS, lambda every: len(_owned(every, "db")) == 1, namespace=namespace
    )
    assert _owned(left, "db") == [Name(namespace, "db-0")]
    await settled_one(client, STATEFUL_SETS, name, is_rolled_out(1))


async def daemon_set_covers(client: Client, namespace: str, nodes: list[str]) -> None:
    """A daemon set has one pod on each node."""
    name = Name(namespace, "agent")
    wanted = deployment(name, replicas=0)
    del wanted["spec"]["replicas"]
    await client.create(DAEMON_SETS, wanted)
    await settled_one(
        client,
        DAEMON_SETS,
        name,
        lambda it: (it or {}).get("status", {}).get("numberReady") == len(nodes),
    )
    pods = await pods_of(client, name)
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == nodes


async def namespace_ends(client: Client, namespace: str) -> None:
    """A deleted namespace takes all it contains with it."""
    await client.create(
        CONFIG_MAPS, {"metadata": {"name": "left", "namespace": namespace}, "data": {"a": "b"}}
    )
    await client.delete(NAMESPACES, namespace)
    await settled_one(client, NAMESPACES, Name("", namespace), lambda it: it is None)
    assert not (await client.list(PODS, Selection(namespace=namespace))).items
    assert not (await client.list(CONFIG_MAPS, Selection(namespace=namespace))).items


async def stateful_set_has_storage(client: Client, namespace: str) -> None:
    """Each pod gets a claim; scaling down and deleting take along what the set says."""
    name = Name(namespace, "db")
    claim = {
        "metadata": {"name": "data", "labels": {"kind": "storage"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    labels = {"app": "db"}
    pod = {"containers": [{"name": "main", "image": "a"}], "volumes": [{"name": "data"}]}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"},
    }
    made = {"metadata": {"name": "db", "namespace": namespace}, "spec": spec}
    await client.create(STATEFUL_SETS, made)
    claims = await settled(
        client, VOLUME_CLAIMS, lambda every: len(every) == 2, namespace=namespace
    )
    assert [each.name for each in sorted(claims)] == ["data-db-0", "data-db-1"]
    first = claims[Name(namespace, "data-db-0")]["metadata"]
    assert first["labels"] == {"kind": "storage", "app": "db"}
    pods = await settled(client, PODS, lambda every: len(every) == 2, namespace=namespace)
    volumes = pods[Name(namespace, "db-0")]["spec"]["volumes"]
    wanted = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    assert [each for each in volumes if each["name"] == "data"] == [wanted]
    await settled_one(client, STATEFUL_SETS, name, lambda it: _ready(it) == 2)
    await client.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}}, namespace=namespace)
    await settled(client, VOLUME_CLAIMS, lambda every: len(every) == 1, namespace=namespace)
    await client.delete(STATEFUL_SETS, "db", namespace=namespace)
    await settled(client, PODS, lambda every: not every, namespace=namespace)
    left = (await client.list(VOLUME_CLAIMS, Selection(namespace=namespace))).items
    assert [each["metadata"]["name"] for each in left] == ["data-db-0"]


def _ready(found: Raw | None) -> int:
    return int((found or {}).get("status", {}).get("readyReplicas", 0))
