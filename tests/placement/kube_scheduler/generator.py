"""
Random clusters with one pod to place: small, so that everything meets everything.

Few names and values, because what matters is that selectors, terms and taints hit and miss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

Raw: TypeAlias = "dict[str, Any]"

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
KEYS = (HOSTNAME, ZONE, "rack")
NAMESPACES = ("default", "blue", "green")
APPS = ("a", "b", "c")
IMAGES = ("registry.example/train:1", "registry.example/serve", "tool:latest")
MB = 1024 * 1024

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Generator:
    """Cases from one source of chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def case(self) -> Raw:
        """A cluster and a pod, as the oracle is asked."""
        nodes = [self._node(f"node-{number}") for number in range(self._chance.randint(1, 7))]
        pods = [
            self._running(f"pod-{number}", self._chance.choice(nodes)["metadata"]["name"])
            for number in range(self._chance.randint(0, 14))
        ]
        found: Raw = {
            "nodes": nodes,
            "pods": pods,
            "namespaces": [self._namespace(name) for name in NAMESPACES if self._once_in(5) < 1],
            "pod": self._waiting(),
        }
        for key, made in (
            ("services", self._services()),
            ("replicaSets", self._replica_sets()),
            ("statefulSets", self._stateful_sets()),
            ("replicationControllers", self._replication_controllers()),
            ("storageClasses", self._storage_classes()),
        ):
            if made:
                found[key] = made
        self._add_volumes(found)
        if self._once_in(6) == 0:
            found["configuration"] = self._configuration()
        return found

    def change(self, case: Raw) -> Raw:
        """Yield the cluster after an event, with another pod to place."""
        found = {**case, "pod": self._waiting()}
        found.pop("volumeClaims", None)
        names = [node["metadata"]["name"] for node in case["nodes"]]
        event = self._chance.randrange(8)
        if event == 0 or not names:
            found["nodes"] = [*case["nodes"], self._node(f"late-{self._chance.randrange(10**9)}")]
        elif event == 1:
            name = self._chance.choice(names)
            others = [node for node in case["nodes"] if node["metadata"]["name"] != name]
            found["nodes"] = [*others, self._node(name)]
        elif event == 2 and len(names) > 1:
            gone = self._chance.choice(names)
            found["nodes"] = [n for n in case["nodes"] if n["metadata"]["name"] != gone]
            found["pods"] = [p for p in case["pods"] if p["spec"]["nodeName"] != gone]
        elif event == 3 and case["pods"]:
            gone = self._chance.choice(case["pods"])
            found["pods"] = [pod for pod in case["pods"] if pod is not gone]
        elif event == 4 and case["pods"]:
            pod = self._chance.choice(case["pods"])
            leaving = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
            others = [each for each in case["pods"] if each is not pod]
            found["pods"] = [*others, {**pod, "metadata": leaving}]
        elif event == 5:
            found["namespaces"] = [self._namespace(name) for name in NAMESPACES]
        return found

    def _once_in(self, number: int) -> int:
        return 0 if self._chance.randrange(number) == 0 else 1

    def _maybe(self, holder: Raw, key: str, make: Callable[[], Any], one_in: int = 2) -> None:
        if self._chance.randrange(one_in) == 0:
            holder[key] = make()

    def _some(self, make: Callable[[], Any], most: int = 2) -> list[Any]:
        return [make() for _ in range(self._chance.randint(1, most))]

    def _namespace(self, name: str) -> Raw:
        labels = {"team": self._chance.choice("xy")} if self._chance.random() < 0.7 else {}
        return {"metadata": {"name": name, "labels": labels}}

    def _node(self, name: str) -> Raw:
        pick = self._chance.choice
        labels = {}
        if self._chance.random() < 0.85:
            labels[HOSTNAME] = name
        if self._chance.random() < 0.8:
            labels[ZONE] = pick(("z1", "z2", "z3"))
        if self._chance.random() < 0.5:
            labels["rack"] = pick(("r1", "r2"))
        if self._chance.random() < 0.5:
            labels["size"] = pick(("3", "7"))
        if self._chance.random() < 0.1:
            labels[BETA_ZONE] = pick(("z1", "z2"))
        amounts = {
            "cpu": pick(("2", "4", "8", "3900m")),
            "memory": pick(("4Gi", "8Gi", "16Gi")),
            "pods": pick(("3", "110", "110")),
        }
        self._maybe(amounts, "example.com/gpu", lambda: pick(("1", "8")), 4)
        self._maybe(amounts, "ephemeral-storage", lambda: "10Gi", 4)
        spec: Raw = {}
        self._maybe(spec, "taints", lambda: self._some(self._taint), 3)
        self._maybe(spec, "unschedulable", lambda: True, 8)
        status: Raw = {"allocatable": amounts, "capacity": amounts}
        self._maybe(status, "images", lambda: self._some(self._image, 3), 3)
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    def _image(self) -> Raw:
        name = self._chance.choice(IMAGES)
        name = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        size = self._chance.choice((10, 300, 1500, 9000)) * MB + self._chance.randrange(1000)
        return {"names": [name, f"{name}@digest"], "sizeBytes": size}

    def _taint(self) -> Raw:
        effects = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")
        return {
            "key": self._chance.choice(("gpu", "spot")),
            "value": self._chance.choice(("", "yes", "no")),
            "effect": self._chance.choice(effects),
        }

    def _toleration(self) -> Raw:
        toleration: Raw = {}
        self._maybe(toleration, "key", lambda: self._chance.choice(("gpu", "spot")))
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        self._maybe(toleration, "effect", lambda: self._chance.choice(effects))
        if "key" not in toleration or self._chance.random() < 0.4:
            return {**toleration, "operator": "Exists"}
        return {**toleration, "value": self._chance.choice(("", "yes"))}

    def _pod(self, name: str) -> Raw:
        labels = {"app": self._chance.choice(APPS)} if self._chance.random() < 0.9 else {}
        self._maybe(labels, "tier", lambda: self._chance.choice(("front", "back")))
        spec: Raw = {"containers": self._some(self._container)}
        self._maybe(spec, "initContainers", lambda: self._some(self._init_container), 5)
        self._maybe(spec, "overhead", lambda: {"cpu": "100m", "memory": "64Mi"}, 8)
        namespace = self._chance.choice(NAMESPACES)
        return {
            "metadata": {"name": name, "namespace": namespace, "labels": labels, "uid": name},
            "spec": spec,
        }

    def _running(self, name: str, node: str) -> Raw:
        pod = self._pod(name)
        pod["spec"]["nodeName"] = node
        pod["spec"]["containers"] = pod["spec"]["containers"][:1]
        if self._chance.random() < 0.35:
            pod["spec"]["affinity"] = self._pod_affinity()
        if self._chance.random() < 0.1:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return pod

    def _waiting(self) -> Raw:
        pod = self._pod("asked")
        spec = pod["spec"]
        if self._chance.random() < 0.5:
            spec["affinity"] = self._pod_affinity()
        if self._chance.random() < 0.3:
            spec.setdefault("affinity", {})["nodeAffinity"] = self._node_affinity()
        self._maybe(spec, "topologySpreadConstraints", lambda: self._some(self._spread, 3))
        self._maybe(spec, "tolerations", lambda: self._some(self._toleration, 3))
        self._maybe(spec, "nodeSelector", lambda: {"size": self._chance.choice("37")}, 10)
        self._maybe(pod["metadata"], "ownerReferences", lambda: [self._owner()], 3)
        return pod

    def _container(self) -> Raw:
        requests: Raw = {}
        self._maybe(requests, "cpu", lambda: self._chance.choice(("100m", "500m", "1")))
        self._maybe(requests, "memory", lambda: self._chance.choice(("128Mi", "1Gi", "3Gi")))
        self._maybe(requests, "example.com/gpu", lambda: "1", 10)
        self._maybe(requests, "ephemeral-storage", lambda: "2Gi", 10)
        container: Raw = {
            "name": f"c{self._chance.randrange(10**6)}",
            "image": self._chance.choice(IMAGES),
            "resources": {"requests": requests},
        }
        ports = [
            {"containerPort": 80, "hostPort": self._chance.choice((80, 81)), "protocol": "TCP"}
        ]
        self._maybe(container, "ports", lambda: ports, 8)
        return container

    def _init_container(self) -> Raw:
        container = self._container()
        container.pop("ports", None)
        self._maybe(container, "restartPolicy", lambda: "Always", 3)
        return container

    def _pod_affinity(self) -> Raw:
        affinity: Raw = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            part: Raw = {}
            self._maybe(part, REQUIRED, lambda: self._some(self._term), 3)
            self._maybe(part, PREFERRED, lambda: self._some(self._weighted_term), 3)
            if part:
                affinity[kind] = part
        return affinity

    def _term(self) -> Raw:
        term: Raw = {"topologyKey": self._chance.choice(KEYS)}
        self._maybe(term, "labelSelector", self._selector, 1 if self._chance.random() < 0.9 else 2)
        self._maybe(term, "namespaces", lambda: self._sample(NAMESPACES), 5)
        self._maybe(term, "namespaceSelector", self._namespace_selector, 5)
        return term

    def _weighted_term(self) -> Raw:
        return {"weight": self._chance.choice((1, 10, 100)), "podAffinityTerm": self._term()}

    def _sample(self, of: Sequence[str]) -> list[str]:
        return self._chance.sample(of, self._chance.randint(1, 2))

    def _selector(self) -> Raw:
        selector: Raw = {}
        self._maybe(selector, "matchLabels", lambda: {"app": self._chance.choice(APPS)})
        self._maybe(selector, "matchExpressions", lambda: self._some(self._expression), 3)
        return selector

    def _expression(self) -> Raw:
        key, values = self._chance.choice((("app", APPS), ("tier", ("front", "back"))))
        operator = self._chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        expression = {"key": key, "operator": operator}
        return {**expression, "values": self._sample(values)} if "In" in operator else expression

    def _namespace_selector(self) -> Raw:
        operator = self._chance.choice(("In", "NotIn", "Exists", "DoesNotExist", ""))
        if not operator:
            return {}
        expression: Raw = {"key": "team", "operator": operator}
        if "In" in operator:
            expression["values"] = [self._chance.choice("xy")]
        return {"matchExpressions": [expression]}

    def _node_affinity(self) -> Raw:
        affinity: Raw = {}
        terms = {"nodeSelectorTerms": self._some(self._node_term)}
        self._maybe(affinity, REQUIRED, lambda: terms)
        self._maybe(affinity, PREFERRED, lambda: self._some(self._preference, 3))
        return affinity

    def _preference(self) -> Raw:
        return {"weight": self._chance.choice((1, 5, 100)), "preference": self._node_term()}

    def _node_term(self) -> Raw:
        term: Raw = {}
        if self._chance.random() < 0.95:
            term["matchExpressions"] = self._some(self._node_expression)
        if self._chance.random() < 0.1:
            names = [f"node-{self._chance.randrange(7)}"]
            operator = self._chance.choice(("In", "In", "NotIn"))
            field = {"key": "metadata.name", "operator": operator, "values": names}
            term["matchFields"] = [field]
        return term

    def _node_expression(self) -> Raw:
        operator = self._chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "size", "operator": operator, "values": ["5"]}
        key, values = self._chance.choice(((ZONE, ("z1", "z2")), ("rack", ("r1", "r2"))))
        expression: Raw = {"key": key, "operator": operator}
        return {**expression, "values": self._sample(values)} if "In" in operator else expression

    def _spread(self) -> Raw:
        spread: Raw = {
            "maxSkew": self._chance.choice((1, 1, 2)),
            "topologyKey": self._chance.choice(KEYS),
            "whenUnsatisfiable": self._chance.choice(("DoNotSchedule", "ScheduleAnyway")),
        }
        policy = ("Honor", "Ignore")
        self._maybe(
            spread, "labelSelector", self._selector, 1 if self._chance.random() < 0.9 else 2
        )
        self._maybe(spread, "minDomains", lambda: self._chance.randint(1, 4), 4)
        self._maybe(spread, "nodeAffinityPolicy", lambda: self._chance.choice(policy), 3)
        self._maybe(spread, "nodeTaintsPolicy", lambda: self._chance.choice(policy), 3)
        self._maybe(spread, "matchLabelKeys", lambda: ["tier"], 5)
        return spread

    def _owner(self) -> Raw:
        version, kind = self._chance.choice(
            (
                ("apps/v1", "ReplicaSet"),
                ("apps/v1", "StatefulSet"),
                ("v1", "ReplicationController"),
                ("batch/v1", "Job"),
            )
        )
        return {
            "apiVersion": version,
            "kind": kind,
            "name": "owner",
            "uid": "owner",
            "controller": self._chance.random() < 0.9,
        }

    def _services(self) -> list[Raw]:
        return [
            {
                "metadata": {"name": f"service-{number}", "namespace": namespace},
                "spec": {"selector": {"app": self._chance.choice(APPS)}}
                if self._chance.random() < 0.8
                else {},
            }
            for number, namespace in enumerate(NAMESPACES)
            if self._chance.random() < 0.3
        ]

    def _owned(self, spec: Callable[[], Raw]) -> list[Raw]:
        return [
            {"metadata": {"name": "owner", "namespace": namespace}, "spec": spec()}
            for namespace in NAMESPACES
            if self._chance.random() < 0.3
        ]

    def _replica_sets(self) -> list[Raw]:
        return self._owned(lambda: {"selector": self._selector()})

    def _stateful_sets(self) -> list[Raw]:
        return self._owned(lambda: {"selector": self._selector()})

    def _replication_controllers(self) -> list[Raw]:
        # A label that no Service selects: of those of one pod the server lets none disagree.
        return self._owned(lambda: {"selector": {"tier": self._chance.choice(("front", "back"))}})

    def _storage_classes(self) -> list[Raw]:
        modes = ("Immediate", "WaitForFirstConsumer")
        found: list[Raw] = [
            {"metadata": {"name": mode.lower()}, "provisioner": "p", "volumeBindingMode": mode}
            for mode in modes
        ]
        self._maybe(found[1], "allowedTopologies", lambda: self._some(self._topology))
        local = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": modes[1]}
        return [*found, {"metadata": {"name": "local"}, **local}]

    def _topology(self) -> Raw:
        values = self._chance.sample(("z1", "z2", "z3"), 2)
        return {"matchLabelExpressions": [{"key": ZONE, "values": values}]}

    def _add_volumes(self, case: Raw) -> None:
        """Claims of the pod, most of them bound."""
        if self._chance.random() > 0.15:
            return
        pod = case["pod"]
        claims = []
        volumes = []
        for number in range(self._chance.randint(1, 2)):
            name = f"data-{number}"
            metadata = {"namespace": pod["metadata"]["namespace"]}
            claim: Raw = {
                "metadata": {**metadata, "name": name, "annotations": {}},
                "spec": {"storageClassName": "immediate"},
            }
            if self._chance.random() < 0.5:
                claim["spec"] = self._asked()
                if self._chance.random() < 0.25:
                    node = self._chance.choice(case["nodes"])["metadata"]["name"]
                    claim["metadata"]["annotations"][SELECTED_NODE] = node
            elif self._chance.random() < 0.9:
                claim["spec"]["volumeName"] = f"volume-{number}"
                claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
            claims.append(claim)
            volumes.append(self._volume(f"volume-{number}"))
            source = {"name": name, "persistentVolumeClaim": {"claimName": name}}
            pod["spec"].setdefault("volumes", []).append(source)
        known = [v for v in volumes if self._once_in(12)]
        known += [self._free_volume(number, pod) for number in range(self._chance.randint(0, 3))]
        case.update(volumeClaims=claims, volumes=known)

    def _asked(self) -> Raw:
        """Return the spec of a claim that is bound when its pod has a node."""
        spec = {
            "storageClassName": self._chance.choice(("waitforfirstconsumer", "local", "local")),
            "accessModes": self._chance.choice((["ReadWriteOnce"], ["ReadOnlyMany"])),
            "resources": {"requests": {"storage": f"{self._chance.randint(1, 3)}Gi"}},
        }
        self._maybe(spec, "selector", lambda: {"matchLabels": {"disk": "fast"}}, 5)
        self._maybe(spec, "volumeMode", lambda: self._chance.choice(("Block", "Filesystem")), 5)
        return spec

    def _free_volume(self, number: int, pod: Raw) -> Raw:
        """One that somebody has made, mostly for whoever wants it."""
        made = self._volume(f"free-{number}")
        made["metadata"]["labels"] = {"disk": self._chance.choice(("fast", "fast", "slow"))}
        # One size for each: of several of one size kube-scheduler takes any.
        offer = {
            "storageClassName": self._chance.choice(("waitforfirstconsumer", "local", "local")),
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"][: self._chance.randint(1, 2)],
            "capacity": {"storage": f"{2 + number}Gi"},
        }
        kept = {"namespace": pod["metadata"]["namespace"], "name": "data-0"}
        self._maybe(offer, "claimRef", lambda: kept, 6)
        self._maybe(offer, "volumeMode", lambda: self._chance.choice(("Block", "Filesystem")), 5)
        phase = "Available" if self._chance.random() < 0.9 else "Released"
        return {**made, "spec": made["spec"] | offer, "status": {"phase": phase}}

    def _volume(self, name: str) -> Raw:
        labels: Raw = {}
        self._maybe(labels, ZONE, lambda: self._chance.choice(("z1", "z2", "z1__z3")), 3)
        self._maybe(labels, BETA_ZONE, lambda: self._chance.choice(("z1", "z2")), 6)
        spec: Raw = {}
        required = {"required": {"nodeSelectorTerms": self._some(self._node_term)}}
        self._maybe(spec, "nodeAffinity", lambda: required)
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _configuration(self) -> Raw:
        """A profile with arguments."""
        spread: Raw = {"defaultingType": "List", "defaultConstraints": []}
        for action in ("ScheduleAnyway", "DoNotSchedule"):
            constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": action}
            if self._chance.random() < 0.5:
                spread["defaultConstraints"].append(constraint)
        near: Raw = {"hardPodAffinityWeight": self._chance.choice((0, 1, 50))}
        self._maybe(near, "ignorePreferredTermsOfExistingPods", lambda: True)
        added: Raw = {"addedAffinity": {PREFERRED: self._some(self._preference)}}
        if self._chance.random() < 0.3:
            term = {"matchExpressions": self._some(self._node_expression)}
            added["addedAffinity"][REQUIRED] = {"nodeSelectorTerms": [term]}
        args = {"PodTopologySpread": spread, "InterPodAffinity": near, "NodeAffinity": added}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "pluginConfig": [
                        {"name": name, "args": value}
                        for name, value in args.items()
                        if self._chance.random() < 0.6
                    ],
                }
            ],
        }


class Storing(Generator):
    """Cases where most nodes take the pod, and its volumes decide which is the best."""

    def _waiting(self) -> Raw:
        pod = super()._waiting()
        for part in ("affinity", "nodeSelector", "topologySpreadConstraints"):
            pod["spec"].pop(part, None)
        pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        return pod

    def _add_volumes(self, case: Raw) -> None:
        pod = case["pod"]
        nodes = [node["metadata"]["name"] for node in case["nodes"]]
        claims = []
        for number in range(self._chance.randint(1, 2)):
            name = f"data-{number}"
            metadata = {"namespace": pod["metadata"]["namespace"], "name": name}
            spec = {**self._asked(), "accessModes": ["ReadWriteOnce"]}
            spec.pop("selector", None)
            claims.append({"metadata": {**metadata, "annotations": {}}, "spec": spec})
            source = {"name": name, "persistentVolumeClaim": {"claimName": name}}
            pod["spec"].setdefault("volumes", []).append(source)
        volumes = []
        for number in range(self._chance.randint(4, 12)):
            volume = self._free_volume(number, pod)
            # Of several volumes that are kept for one claim kube-scheduler takes any.
            volume["spec"].pop("claimRef", None)
            volume["spec"].pop("volumeMode", None)
            term = {"key": HOSTNAME, "operator": "In", "values": [self._chance.choice(nodes)]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
            volume["metadata"]["labels"] = {}
            volume["spec"]["nodeAffinity"] = {"required": terms}
            volumes.append(volume)
        case.update(volumeClaims=claims, volumes=volumes)


class Crowded(Generator):
    """Cases where pods of lower priority are in the way, and budgets protect some of them."""

    def case(self) -> Raw:
        found = super().case()
        for number, pod in enumerate(self._chance.sample(found["pods"], len(found["pods"]))):
            # No two started at once: which of them goes would not be told by anything.
            started = {"startTime": f"2026-01-01T00:{number:02}:00Z"}
            pod["status"] = {} if number == 0 and self._chance.random() < 0.3 else started
            pod["metadata"]["creationTimestamp"] = f"2025-01-01T00:{59 - number:02}:00Z"
            self._maybe(pod["spec"], "priority", lambda: self._chance.choice((-5, 0, 1, 1, 5, 10)))
        _share_no_ports(found["pods"])
        if "topologySpreadConstraints" in found["pod"]["spec"] or "configuration" in found:
            # kube-scheduler takes a terminating pod off counts in which it never was.
            for pod in found["pods"]:
                pod["metadata"].pop("deletionTimestamp", None)
        found["budgets"] = [
            self._budget(number, [pod["metadata"]["name"] for pod in found["pods"]])
            for number in range(self._chance.randint(0, 4))
        ]
        return found

    def _node(self, name: str) -> Raw:
        node = super()._node(name)
        amounts = {"cpu": self._chance.choice(("2", "3")), "memory": "8Gi"}
        node["status"]["allocatable"] |= amounts
        if self._chance.random() < 0.8:
            node["spec"] = {}
        return node

    def _running(self, name: str, node: str) -> Raw:
        pod = super()._running(name, node)
        cpu = self._chance.choice(("200m", "500m", "1"))
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        return pod

    def _waiting(self) -> Raw:
        pod = super()._waiting()
        if self._chance.random() < 0.7:
            pod["spec"].pop("affinity", None)
            pod["spec"].pop("nodeSelector", None)
        cpu = self._chance.choice(("1", "1800m", "1800m"))
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        self._maybe(pod["spec"], "priority", lambda: self._chance.choice((-1, 2, 7, 20, 20)), 1)
        self._maybe(pod["spec"], "preemptionPolicy", lambda: "Never", 30)
        return pod

    def _add_volumes(self, case: Raw) -> None:
        """None: a pod that waits for a volume is not helped by pods that go."""

    def _budget(self, number: int, pods: Sequence[str]) -> Raw:
        spec: Raw = {}
        self._maybe(spec, "selector", self._selector, 1 if self._chance.random() < 0.9 else 2)
        status: Raw = {"disruptionsAllowed": self._chance.choice((0, 0, 1, 2))}
        if pods and self._chance.random() < 0.4:
            status["disruptedPods"] = {self._chance.choice(pods): "2026-01-01T00:00:00Z"}
        namespace = self._chance.choice(NAMESPACES)
        metadata = {"name": f"budget-{number}", "namespace": namespace}
        return {"metadata": metadata, "spec": spec, "status": status}


def _share_no_ports(pods: Sequence[Raw]) -> None:
    """On one node two pods never have the same port; kube-scheduler's books count on it."""
    used = set()
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        for port in container.get("ports", ()):
            taken = (pod["spec"]["nodeName"], port["hostPort"])
            if taken in used:
                del container["ports"]
            used.add(taken)
