"""
Anonymize a recorded scenario.

Each name, and each value of a label, gets another name, the same in every place: references and
selectors keep their meaning. The keys of Kubernetes, the labels that describe the machine of a
node, numbers, and the names of drivers and their attributes stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.raw import Raw

# Values that say nothing of whose they are.
_TELLING_NOTHING = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
    }
)
_PLAIN_VALUE = re.compile(r"true|false|[0-9.]*", re.IGNORECASE)
_OURS = re.compile(r"(?:^|\.)(?:kubernetes\.io|k8s\.io|x-k8s\.io|kubenexus\.io|dryrack\.dev)/")
_KEPT_NAMES = frozenset(
    {"", "default", "default-scheduler", "kube-system", "kube-public", "kube-node-lease"}
)
_KEPT_PREFIX = "system-"
_LITERAL = re.compile(r"""("|')((?:(?!\1)[^\\])*)\1""")
_IDENTIFYING = re.compile(r"uuid|serial", re.IGNORECASE)
# Fields that hold the name of an object, and what to call it.
_REFERENCES = {
    "nodeName": "node",
    "namespace": "namespace",
    "resourceClaimName": "claim",
    "resourceClaimTemplateName": "template",
    "deviceClassName": "class",
    "priorityClassName": "priority",
    "schedulerName": "scheduler",
    "podGroupName": "group",
    "podGroup": "group",
}
_KINDS = {
    "Namespace": "namespace",
    "Pod": "pod",
    "ResourceClaim": "claim",
    "ResourceClaimTemplate": "template",
    "DeviceClass": "class",
    "ResourceSlice": "slice",
    "PriorityClass": "priority",
    "PodGroup": "group",
    "Workload": "group",
    "DeviceTaintRule": "rule",
}


def anonymous(scenario: Raw, *, keeps: frozenset[str] = frozenset()) -> Raw:
    """Return the scenario with other names; `keeps` are names that stay."""
    return _Renaming(keeps).scenario(scenario)


class _Renaming:
    """The new name of each name, chosen when the name is first met."""

    def __init__(self, keeps: frozenset[str]) -> None:
        self._keeps = keeps | _KEPT_NAMES
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        # Names of drivers and attributes, and what these are, as they stay.
        self._published: set[str] = set()

    def scenario(self, scenario: Raw) -> Raw:
        """
        Return the scenario with other names.

        Nodes come first, because pools and labels have their names.
        """
        self._meet_devices(scenario["objects"])
        nodes = [self._node(each) for each in scenario["fleet"]["nodes"]]
        objects = [
            each if isinstance(each, str) else self._object(each) for each in scenario["objects"]
        ]
        steps = [self._step(each) for each in scenario["steps"]]
        made = {**scenario, "title": "A recorded cluster", "fleet": {"nodes": nodes}}
        made |= {"objects": objects, "steps": steps}
        if "faults" in scenario:
            made["faults"] = [self._fault(each) for each in scenario["faults"]]
        if "recorded" in scenario:
            made["recorded"] = [self._rename_recorded(each) for each in scenario["recorded"]]
        return made

    def _step(self, step: Raw) -> Raw:
        """Return the step with other names; its title may name a node or a rule."""
        renamed = {**step, "title": self._fault(step["title"])}
        if "apply" in step:
            renamed["apply"] = [self._object(each) for each in step["apply"]]
        if "fail" in step:
            renamed["fail"] = [self._fault(each) for each in step["fail"]]
        return renamed

    def _rename_recorded(self, entry: Raw) -> Raw:
        namespace, _, name = entry["pod"].partition("/")
        renamed = {
            **entry,
            "pod": f"{self._name(namespace, 'namespace')}/{self._name(name, 'pod')}",
        }
        return renamed | ({"node": self._name(entry["node"], "node")} if "node" in entry else {})

    def _meet_devices(self, objects: list[Any]) -> None:
        """Collect the published names of devices, before any expression that uses them."""
        for each in objects:
            if isinstance(each, Mapping) and each["kind"] == "ResourceSlice":
                self._published.add(each["spec"].get("driver", ""))
                for device in get(each["spec"], "devices", ()):
                    for name, value in self._attributes(get(device, "attributes", {})).items():
                        self._published.update(name.split("/"), _strings(value))

    def _name(self, name: str, kind: str) -> str:
        if name in self._keeps or name.startswith(_KEPT_PREFIX):
            return name
        if name not in self._names:
            self._counts[kind] += 1
            self._names[name] = f"{kind}-{self._counts[kind]}"
        return self._names[name]

    def _rename_known(self, name: str) -> str:
        return self._names.get(name, name)

    def _fault(self, words: str) -> str:
        return " ".join(self._rename_known(word) for word in words.split(" "))

    def _node(self, node: Raw) -> Raw:
        made = {**node, "name": self._name(node["name"], "node")}
        if "labels" in node:
            made["labels"] = self._labels(node["labels"])
        if "taints" in node:
            made["taints"] = [self._rename_key(each) for each in node["taints"]]
        return made

    def _object(self, obj: Raw) -> Raw:
        meta = dict(obj["metadata"])
        meta["name"] = self._name(meta["name"], _KINDS.get(obj["kind"], "object"))
        if "namespace" in meta:
            meta["namespace"] = self._name(meta["namespace"], "namespace")
        if "labels" in meta:
            meta["labels"] = self._labels(meta["labels"])
        rest = {key: self._value(key, obj[key]) for key in obj if key not in ("metadata", "kind")}
        return {"apiVersion": rest.pop("apiVersion"), "kind": obj["kind"], "metadata": meta, **rest}

    def _value(self, key: str, value: Any) -> Any:
        special: dict[str, Callable[[Any], Any]] = {
            "matchLabels": self._labels,
            "nodeSelector": self._node_selector,
            "labelSelector": self._selector,
            "matchLabelKeys": lambda keys: [self._key(each) for each in keys],
            "mismatchLabelKeys": lambda keys: [self._key(each) for each in keys],
            "topologyKey": self._key,
            "namespaces": lambda names: [self._name(each, "namespace") for each in names],
            "expression": self._expression,
            "matchExpressions": lambda each: [self._requirement(one) for one in each],
            "matchFields": lambda each: [self._field(one) for one in each],
            "tolerations": lambda each: [self._rename_key(one) for one in each],
            "taints": lambda each: [self._rename_key(one) for one in each],
            "containers": lambda each: self._rename_parts(each, "container"),
            "initContainers": lambda each: self._rename_parts(each, "container"),
            "resourceClaims": lambda each: self._rename_parts(each, "entry"),
            "claims": lambda each: self._rename_parts(each, "entry"),
            "schedulingGates": lambda each: self._rename_parts(each, "gate"),
            "firstAvailable": lambda each: self._rename_parts(each, "request"),
            "requests": self._requests,
            "request": self._request,
            "pool": self._pool,
            "attributes": self._attributes,
            "workloadRef": self._workload,
        }
        if key in special:
            return special[key](value)
        if key in _REFERENCES and isinstance(value, str):
            return self._name(value, _REFERENCES[key])
        if isinstance(value, Mapping):
            return {inner: self._value(inner, each) for inner, each in value.items()}
        if isinstance(value, list):
            return [self._value("", each) for each in value]
        return value

    def _rename_parts(self, parts: Any, kind: str) -> Any:
        """Return the parts of an object that have names, with other names."""
        return [{**self._value("", each), "name": self._name(each["name"], kind)} for each in parts]

    def _requests(self, requests: Any) -> Any:
        """Return the requests of a claim; the requests of a container are amounts."""
        if isinstance(requests, Mapping):
            return requests
        if requests and isinstance(requests[0], str):
            return [self._request(each) for each in requests]
        return self._rename_parts(requests, "request")

    def _request(self, name: str) -> str:
        """Return the name of a request, or of a subrequest after a slash."""
        return "/".join(self._name(each, "request") for each in name.split("/"))

    def _node_selector(self, value: Any) -> Any:
        """Return the labels of a pod's selector, or the terms of a slice or volume."""
        return self._selector(value) if "nodeSelectorTerms" in value else self._labels(value)

    def _selector(self, value: Any) -> Any:
        return {inner: self._value(inner, each) for inner, each in value.items()}

    def _labels(self, labels: Mapping[str, str]) -> Raw:
        return {self._key(key): self._label_value(key, value) for key, value in labels.items()}

    def _key(self, key: str) -> str:
        return key if _OURS.search(key) or key in _TELLING_NOTHING else self._name(key, "label")

    def _label_value(self, key: str, value: str) -> str:
        if key in _TELLING_NOTHING or _PLAIN_VALUE.fullmatch(value):
            return value
        return self._name(value, "value")

    def _rename_key(self, each: Raw) -> Raw:
        """Return a taint or a toleration with other names."""
        made = dict(each)
        if "key" in made:
            made["key"] = self._key(made["key"])
        if "value" in made:
            made["value"] = self._label_value(each.get("key", ""), made["value"])
        return made

    def _requirement(self, each: Raw) -> Raw:
        made = {**each, "key": self._key(each["key"])}
        if "values" in each:
            made["values"] = [self._label_value(each["key"], one) for one in each["values"]]
        return made

    def _field(self, each: Raw) -> Raw:
        return {**each, "values": [self._name(one, "node") for one in each.get("values", ())]}

    def _pool(self, pool: Any) -> Any:
        """Return the new name of a pool, which often is that of its node."""
        if isinstance(pool, str):
            return self._name(pool, "pool")
        return {**pool, "name": self._name(pool["name"], "pool")}

    def _attributes(self, attributes: Mapping[str, Any]) -> Raw:
        return {name: self._attribute(name, value) for name, value in attributes.items()}

    def _attribute(self, name: str, value: Any) -> Any:
        if _IDENTIFYING.search(name) and isinstance(value, Mapping) and "string" in value:
            return {**value, "string": self._name(value["string"], "identifier")}
        return value

    def _expression(self, text: str) -> str:
        """
        Return the expression with other names in its quotes.

        Attributes in slices stay, also if a class or a label has the same name.
        """

        def literal(found: re.Match[str]) -> str:
            name = found[2] if found[2] in self._published else self._rename_known(found[2])
            return f"{found[1]}{name}{found[1]}"

        return _LITERAL.sub(literal, text)

    def _workload(self, reference: Raw) -> Raw:
        made = {key: self._value(key, value) for key, value in reference.items()}
        return {**made, "name": self._name(reference["name"], "group")}


def _strings(attribute: Any) -> list[str]:
    """Return the texts of an attribute, which may be a list."""
    values = attribute.values() if isinstance(attribute, Mapping) else ()
    every = [one for each in values for one in (each if isinstance(each, list) else [each])]
    return [each for each in every if isinstance(each, str)]
