"""
Compares lint with the embedded API server on documents that are broken at random.

Each case mutates a valid document and asks both: lint, and the server through a dry-run create with
strict field validation, which is what kubectl sends. They disagree if one refuses what the other
accepts. Run thousands of cases with

    python -m tests.linter.server_agreement CASES [SEED]
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.apiserver.runtime_config import parse
from dryrack.client.endpoints import NAMESPACES
from dryrack.client.transport import Request
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.linter import Finding, Severity, lint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.raw import Raw

Path = tuple[str | int, ...]

# Lint knows labels of namespaces from files; the server has the same two namespaces.
_NAMESPACES = """
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
apiVersion: v1
kind: Namespace
metadata: {name: admins, labels: {resource.kubernetes.io/admin-access: "true"}}
"""
_DOCUMENTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice, labels: {a: b}, annotations: {c: d}}
spec:
  driver: gpu.example.com
  nodeName: node
  pool: {name: pool, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes:
      model: {string: h100}
      index: {int: 1}
      driverVersion: {version: 1.2.3}
      healthy: {bool: true}
    capacity: {memory: {value: 80Gi, requestPolicy: {default: 1Gi, validRange: {min: 1Gi}}}}
    allowMultipleAllocations: true
    taints: [{key: a, value: b, effect: NoSchedule, timeAdded: "2026-01-02T03:04:05Z"}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: gpu.example.com
  nodeSelector:
    nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
  pool: {name: pool, generation: 1, resourceSliceCount: 1}
  sharedCounters: [{name: set, counters: {memory: {value: 80Gi}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim, namespace: default}
spec:
  devices:
    requests:
    - name: a
      exactly:
        deviceClassName: gpu
        allocationMode: ExactCount
        count: 1
        selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
        tolerations: [{key: k, operator: Exists, effect: NoSchedule}]
        capacity: {requests: {memory: 1Gi}}
    - name: b
      firstAvailable:
      - {name: big, deviceClassName: gpu, count: 2, allocationMode: ExactCount}
      - {name: all, deviceClassName: gpu, allocationMode: All}
    constraints: [{requests: [a, b/big], matchAttribute: gpu.example.com/numa}]
    config: [{requests: [a], opaque: {driver: gpu.example.com, parameters: {x: 1}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: watch, namespace: admins}
spec:
  devices:
    requests:
    - name: all
      exactly: {deviceClassName: gpu, allocationMode: All, adminAccess: true}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: watch, namespace: default}
spec:
  devices:
    requests:
    - name: all
      exactly: {deviceClassName: gpu, allocationMode: All, adminAccess: true}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: template, namespace: default}
spec:
  metadata: {labels: {a: b}}
  spec:
    devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: class}
spec:
  selectors: [{cel: {expression: "true"}}]
  config: [{opaque: {driver: gpu.example.com, parameters: {x: 1}}}]
  extendedResourceName: example.com/gpu
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: rule}
spec:
  deviceSelector: {driver: gpu.example.com, pool: pool, device: gpu-0}
  taint: {key: a, value: b, effect: NoExecute, timeAdded: "2026-01-02T03:04:05Z"}
---
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: claim, namespace: default}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: claim, namespace: default}
spec:
  devices:
    requests:
    - {name: a, deviceClassName: gpu, allocationMode: ExactCount, count: 2}
    - {name: b, firstAvailable: [{name: c, deviceClassName: gpu}]}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: gpu.example.com
  allNodes: true
  pool: {name: pool, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic: {attributes: {model: {string: h100}}, capacity: {memory: {value: 80Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: default, labels: {a: b}}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: i
    command: [sleep, "1"]
    env: [{name: A, value: b}]
    ports: [{containerPort: 80, protocol: TCP}]
    resources: {requests: {cpu: "1"}, limits: {memory: 1Gi}, claims: [{name: gpu, request: a}]}
    volumeMounts: [{name: v, mountPath: /v}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: template}]
  tolerations: [{key: a, operator: Exists}]
  volumes: [{name: v, emptyDir: {}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: default}
spec:
  parallelism: 1
  completions: 1
  backoffLimit: 2
  template:
    metadata: {labels: {a: b}}
    spec: {restartPolicy: Never, containers: [{name: c, image: i, env: [{name: A, value: b}]}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron, namespace: default}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: deployment, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: stateful, namespace: default}
spec:
  serviceName: s
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemon, namespace: default}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: default}
data: {a: b}
binaryData: {c: aGVsbG8=}
---
apiVersion: v1
kind: Secret
metadata: {name: secret, namespace: default}
type: Opaque
data: {c: aGVsbG8=}
stringData: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: service, namespace: default}
spec: {selector: {a: b}, ports: [{name: http, port: 80, targetPort: http, protocol: TCP}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {a: b}}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {a: b}}
spec: {taints: [{key: a, value: b, effect: NoSchedule}], unschedulable: true}
status: {capacity: {cpu: "8", memory: 64Gi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: default}
spec: {hard: {pods: "4", requests.cpu: "8", gpu.deviceclass.resource.k8s.io/devices: "4"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: default}
spec: {limits: [{type: Container, default: {cpu: "1"}, max: {cpu: "2"}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
preemptionPolicy: Never
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lease, namespace: default}
spec:
  holderIdentity: me
  leaseDurationSeconds: 40
  acquireTime: "2026-01-02T03:04:05.000000Z"
  renewTime: "2026-01-02T03:04:05.000000Z"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: role}
rules: [{apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: role}
subjects: [{kind: ServiceAccount, name: default, namespace: default}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/disk
volumeBindingMode: Immediate
"""
VALID: tuple[Raw, ...] = tuple(yaml.safe_load_all(_DOCUMENTS))
_CLUSTER_WIDE = frozenset(each["kind"] for each in VALID if "namespace" not in each["metadata"])
_PLURALS = {"StorageClass": "storageclasses", "DeviceClass": "deviceclasses"}
_PLURALS["PriorityClass"] = "priorityclasses"
_STRANGE: tuple[Any, ...] = (
    *(None, "", " ", "x", "A_B", "a/b", "a.b/c/d", "x" * 300, "-1", "1Gi", "2", "All", "true"),
    *(0, -1, 1, 33, 1.0, 1.5, 10**20, True, False, [], {}, ["x", "x"], [{}], {"x": None}),
    *("2026-13-01T00:00:00Z", "2026-01-02T3:04:05Z", "2026-01-02T03:04:05+99:00"),
    *("0000-01-02T03:04:05Z", "2026-01-02T03:04:05+24:60", "9999999999999999999999", "device."),
)
_NEW_FIELDS = ("zzz", "timeAdded", "count", "expression", "exactly", "namespace", "name", "status")
_REFUSED = 400
_KEPT = ("apiVersion", "kind")
# The codes of what a server refuses; other errors are about what a cluster accepts in vain.
_REFUSALS = frozenset({"DR001", "DR002", "DR003", "DR004"})


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of the server and of lint on a document."""

    document: Raw
    status: int
    answer: str
    findings: tuple[Finding, ...]

    @property
    def is_accepted(self) -> bool:
        """Return whether the server accepts the document."""
        return self.status < _REFUSED

    @property
    def is_split(self) -> bool:
        """Return whether one accepts what the other refuses."""
        return self.is_accepted == bool(self.findings)

    @property
    def summary(self) -> str:
        findings = [f"{each.code} {each.field}: {each.what}" for each in self.findings]
        kind = f"{self.document['apiVersion']} {self.document['kind']}"
        lint_says = findings or "accepts it"
        return f"{kind}: server {self.status} {self.answer} | lint {lint_says}"


def is_refusal(finding: Finding) -> bool:
    """Return whether the finding means that an API server refuses the object."""
    in_api = "DR101" <= finding.code <= "DR118"
    return finding.severity is Severity.ERROR and (in_api or finding.code in _REFUSALS)


async def disagreements(seed: int, cases: int) -> list[Verdicts]:
    """Return the documents of a seed about which lint and the server disagree."""
    chance = random.Random(seed)
    mutated = (_mutate(chance.choice(VALID), chance) for _ in range(cases))
    return [each for each in await verdicts(mutated) if each.is_split]


async def verdicts(documents: Iterable[Raw]) -> list[Verdicts]:
    """Ask the server and lint about documents; those for unknown namespaces are left out."""
    namespaces = list(yaml.safe_load_all(_NAMESPACES))
    answers = []
    options = ControlPlaneOptions(runtime_config=parse("api/all=true"))
    async with embedded(options, engines=()) as cluster:
        await cluster.client.create(NAMESPACES, namespaces[1])
        for document in documents:
            if not _is_elsewhere(document):
                status, answer = await _ask_server(cluster, document)
                findings = tuple(filter(is_refusal, _ask_lint(document)))
                answers.append(Verdicts(document, status, answer, findings))
    return answers


def _is_elsewhere(document: Raw) -> bool:
    """Return whether the document is for a namespace that the server does not have."""
    meta = document["metadata"]
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    return isinstance(namespace, str) and namespace not in ("", "default", "admins")


async def _ask_server(cluster: EmbeddedCluster, document: Raw) -> tuple[int, str]:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    meta = document["metadata"] if isinstance(document["metadata"], dict) else {}
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    where = "" if kind in _CLUSTER_WIDE else f"/namespaces/{meta.get('namespace') or 'default'}"
    if not isinstance(meta.get("namespace", ""), str):
        where = where and "/namespaces/default"
    path = f"/{f'apis/{group}' if group else 'api'}/{version}{where}/{plural}"
    query = "dryRun=All&fieldValidation=Strict"
    body = json.dumps(_as_kubectl_sends(document)).encode()
    request = Request("POST", path, query, {"content-type": "application/json"}, body)
    response = await cluster.transport.send(request)
    assert response.status not in (404, 405, 500), (path, response.body)
    assert isinstance(response.body, bytes), "a refusal and an object are no streams"
    return response.status, str(json.loads(response.body).get("message", ""))


def _as_kubectl_sends(value: Any) -> Any:
    """Return the value with 1.0 as 1: kubectl reads numbers as Go does and writes them again."""
    if isinstance(value, dict):
        return {key: _as_kubectl_sends(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_kubectl_sends(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _ask_lint(document: Raw) -> Iterator[Finding]:
    files = [("object.json", json.dumps(document).encode()), ("given.yaml", _NAMESPACES.encode())]
    yield from (each for each in lint(files) if each.file == "object.json")


def _mutate(document: Raw, chance: random.Random) -> Raw:
    """Return the document with one or two changes; apiVersion and kind stay."""
    changed = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 2))):
        path = chance.choice([each for each in _paths(changed) if each[0] not in _KEPT])
        holder: Any = changed
        for step in path[:-1]:
            holder = holder[step]
        _change(holder, path[-1], chance)
    return changed


def _change(holder: Any, key: Any, chance: random.Random) -> None:
    how = chance.random()
    if how < 0.7:
        holder[key] = copy.deepcopy(chance.choice(_STRANGE))
    elif isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif how < 0.85 and key != "metadata":
        del holder[key]
    else:
        holder[chance.choice(_NEW_FIELDS)] = copy.deepcopy(chance.choice(_STRANGE))


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from _paths(each, (*path, key))


def main() -> None:
    """Print the disagreements of many cases, the same kind once."""
    cases = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = asyncio.run(disagreements(seed, cases))
    kinds = Counter(each.document["kind"] for each in found)
    for each in found:
        print(each.summary)  # noqa: T201 - for people
    print(f"{cases} cases, {len(found)} disagreements", dict(kinds))  # noqa: T201


if __name__ == "__main__":
    main()
