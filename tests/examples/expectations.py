"""
Read what an example must lead to, from the `expect.yaml` next to its manifest, and compare.

An example is a list of steps: one thing that its reader does, and what is true when the cluster
is idle again. `problems` compares that with what a test found, on any cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw


ROOT = Path(__file__).parents[2] / "examples"
# `GPU_DEVICE_0`, `GPU_DEVICE_0_PARTITION_1`; other variables of a device end differently.
_DEVICE = re.compile(r"[A-Z_]+_DEVICE_\d+(_PARTITION_\d+|_CHILD_\d+|_FULL)?")
# The format of `export`, and that of the log of a simulated container.
_VARIABLE = re.compile(r"^(?:export |env: )?([A-Z][A-Z0-9_]*)=(?:'(.*)'|(.*))$", re.MULTILINE)


class Container(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The expected devices and variables of a container; both sides of a variable are patterns."""

    devices: int
    env: dict[str, str] = {}
    log: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    One thing to do, and what then holds.

    Pods are `NAME`, or `NAMESPACE/NAME` where that is not the example's; containers have their
    name behind that.
    """

    apply: str = ""
    delete: str = ""
    patch: str = ""
    """The object whose status is changed, by what is in `file`."""
    file: str = ""
    fault: dict[str, str] = {}
    """The faults that devices of the first node get; "" ends the fault of a device."""
    pods: dict[str, str] = {}
    phases: dict[str, int] = {}
    """The number of pods by phase, where their names are random."""
    health: dict[str, str] = {}
    """The health of the devices of pods."""
    waiting: dict[str, str] = {}
    """Pods without a node, and why."""
    unbound: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    containers: dict[str, Container] = {}
    same: tuple[tuple[str, ...], ...] = ()
    different: tuple[tuple[str, ...], ...] = ()


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder of examples."""

    name: str
    steps: tuple[Step, ...]
    nodes: int = 1
    instance_type: str = ""
    devices: tuple[str, ...] = ()
    definitions: str = ""
    """The command whose definitions the cluster needs, which it prints with --print-crds."""
    real_node: bool = True
    """Whether it works with kube-scheduler and the kubelet as it does on a virtual cluster."""
    runtime_config: dict[str, bool] = {}
    feature_gates: tuple[str, ...] = ()
    """Gates that are off by default, and that the example needs."""

    @property
    def directory(self) -> Path:
        return ROOT / self.name

    @property
    def objects(self) -> list[Raw]:
        """The objects of all manifests."""
        paths = [path for step in self.steps for path in self.manifests(step)]
        return [each for path in paths for each in yaml.safe_load_all(path.read_text())]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that the example creates, or the default one; the first is the usual."""
        names = [each["metadata"]["name"] for each in self.objects if each["kind"] == "Namespace"]
        return tuple(names) or ("default",)

    @property
    def namespace(self) -> str:
        return self.namespaces[0]

    @property
    def up(self) -> str:
        """The command that starts the cluster of the example."""
        words = ["dryrack up --detach --merge"]
        words += ["--nodes", str(self.nodes)] if self.nodes else []
        words += ["--instance-type", self.instance_type] if self.instance_type else []
        words += [word for each in self.devices for word in ("--devices", each)]
        words += [f"--runtime-config {version}=true" for version in self.runtime_config]
        if self.feature_gates:
            words.append(
                f"--feature-gates {','.join(f'{each}=true' for each in self.feature_gates)}"
            )
        return " ".join(words)

    def manifests(self, step: Step) -> list[Path]:
        """The files that `kubectl apply -f` reads: one, or those in a directory."""
        path = self.directory / step.apply
        if not step.apply.endswith("/"):
            return [path] if step.apply else []
        return sorted(each for each in path.glob("*.yaml") if each.name != "expect.yaml")


@dataclass(slots=True)
class Seen:
    """The observed state: pods and logs by their names in an example, and texts of events."""

    pods: Mapping[str, Raw]
    logs: Mapping[str, str]
    phases: Sequence[str] = field(default_factory=tuple)
    """The phases of all pods of the example."""
    events: Sequence[str] = field(default_factory=tuple)


def names() -> tuple[str, ...]:
    found = ROOT.rglob("expect.yaml")
    return tuple(sorted(path.parent.relative_to(ROOT).as_posix() for path in found))


def read(name: str) -> Example:
    content = yaml.safe_load((ROOT / name / "expect.yaml").read_text())
    return msgspec.convert({"name": name, **content}, Example)


def place(name: str, parts: int, namespace: str) -> tuple[str, ...]:
    """The namespace, then the parts of a name that has it in front, or not."""
    found = tuple(name.split("/"))
    return found if len(found) > parts else (namespace, *found)


def variables(log: str) -> dict[str, str]:
    """Return the variables that a container printed."""
    return {name: quoted or plain for name, quoted, plain in _VARIABLE.findall(log)}


def devices(log: str) -> frozenset[str]:
    """The devices of a container, by what its variables say of them."""
    return frozenset(v for name, v in variables(log).items() if _DEVICE.fullmatch(name))


def problems(step: Step, seen: Seen) -> list[str]:
    """All that is not as the step says."""
    return [*_pods(step, seen), *_containers(step, seen), *_sharing(step, seen)]


def _pods(step: Step, seen: Seen) -> Iterator[str]:
    for name, phase in step.pods.items():
        pod = seen.pods.get(name)
        if pod is None or pod["status"].get("phase") != phase:
            yield f"pod {name} is not {phase}: {pod and pod['status']}"
    if step.phases and Counter(seen.phases) != step.phases:
        yield f"the pods are not {step.phases}: {seen.phases}"
    for name, health in step.health.items():
        found = _health(seen.pods.get(name))
        if found != {health}:
            yield f"the devices of pod {name} are not {health}: {found}"
    for name, reason in step.waiting.items():
        told = _unscheduled(seen.pods.get(name))
        if not re.search(reason, told):
            yield f"pod {name} does not wait because of {reason!r}: {told}"
    for name in step.unbound:
        if name not in seen.pods or seen.pods[name]["spec"].get("nodeName"):
            yield f"pod {name} is gone, or has a node"
    yield from (f"pod {name} is still there" for name in step.gone if name in seen.pods)
    for event in step.events:
        if not any(re.search(event, text) for text in seen.events):
            yield f"no event says {event!r}: {seen.events}"


def _health(pod: Raw | None) -> set[str]:
    """The health of the devices of a pod, as its status has it."""
    return {
        resource["health"]
        for container in (pod or {}).get("status", {}).get("containerStatuses") or ()
        for claim in container.get("allocatedResourcesStatus") or ()
        for resource in claim["resources"]
    }


def _unscheduled(pod: Raw | None) -> str:
    """Return the reason why a pod has no node from its condition; empty if there is none."""
    if pod is None or pod["spec"].get("nodeName"):
        return ""
    conditions = pod["status"].get("conditions") or ()
    return next((each.get("message", "") for each in conditions if _is_refusal(each)), "")


def _is_refusal(condition: Raw) -> bool:
    return bool(condition["type"] == "PodScheduled" and condition["status"] == "False")


def _containers(step: Step, seen: Seen) -> Iterator[str]:
    for name, wanted in step.containers.items():
        log = seen.logs.get(name, "")
        if len(devices(log)) != wanted.devices:
            yield f"container {name} has {sorted(devices(log))}, not {wanted.devices}: {log}"
        for variable, value in wanted.env.items():
            found = [v for k, v in variables(log).items() if re.fullmatch(variable, k)]
            if not found or not all(re.fullmatch(value, each) for each in found):
                yield f"container {name}: {variable} is {found}, not {value!r}"
        for line in wanted.log:
            if not re.search(line, log, re.MULTILINE):
                yield f"container {name}: no line like {line!r}: {log}"


def _sharing(step: Step, seen: Seen) -> Iterator[str]:
    for group in step.same:
        if len({devices(seen.logs.get(each, "")) for each in group}) != 1:
            yield f"containers {group} do not have the same devices"
    for group in step.different:
        held = [each for name in group for each in devices(seen.logs.get(name, ""))]
        if len(set(held)) != len(held):
            yield f"containers {group} have devices in common: {held}"
