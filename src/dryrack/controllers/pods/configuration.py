"""
ConfigMaps and Secrets that a pod needs, and problems with them, with the kubelet's texts.

Objects of volumes are needed before any container starts; objects of a container's environment,
before that container starts. Optional objects are never needed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dryrack.controllers.objects import spec_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

CONFIG_MAP = "configmap"
SECRET = "secret"
_SHOWN = {CONFIG_MAP: "ConfigMap", SECRET: "Secret"}
_KEY_OF_VOLUME = {
    CONFIG_MAP: "configmap references non-existent config key: ",
    SECRET: "references non-existent secret key: ",
}

# The certificates of the server: only a program would need them, and no program runs here.
_AUTHORITY = "kube-root-ca.crt"

Find = Callable[[str, str, str], Raw | None]
"""Returns an object by kind (`configmap` or `secret`), namespace and name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that must exist, and the keys that it must have."""

    kind: str
    name: str
    keys: tuple[str, ...] = ()


def mount_problem(pod: Raw, find: Find) -> str:
    """Return why a volume of the pod cannot be mounted, or ""."""
    namespace = pod["metadata"].get("namespace", "")
    for volume in get(pod, "spec.volumes", ()):
        for needed in _of_volume(volume):
            problem = _problem(needed, namespace, find)
            if isinstance(problem, _NoKey):
                problem = _KEY_OF_VOLUME[needed.kind] + problem.key
            if problem:
                return f'MountVolume.SetUp failed for volume "{volume["name"]}" : {problem}'
    return ""


def missing_configuration(pod: Raw, find: Find) -> Mapping[str, str]:
    """Return what the environments of containers lack, by the container's name."""
    namespace = pod["metadata"].get("namespace", "")
    problems: dict[str, str] = {}
    for container in _containers(pod):
        for needed in _of_environment(container):
            problem = _problem(needed, namespace, find)
            if isinstance(problem, _NoKey):
                where = f"{_SHOWN[needed.kind]} {namespace}/{needed.name}"
                problem = f"couldn't find key {problem.key} in {where}"
            if problem:
                problems.setdefault(container["name"], problem)
    return problems


def reference_keys(pod: Raw) -> Iterator[str]:
    """Yield the index keys of the objects that a pod needs."""
    namespace = pod["metadata"].get("namespace", "")
    needed = [each for volume in get(pod, "spec.volumes", ()) for each in _of_volume(volume)]
    for container in _containers(pod):
        needed += _of_environment(container)
    yield from sorted({index_key(each.kind, namespace, each.name) for each in needed})


def index_key(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


@dataclass(frozen=True, slots=True)
class _NoKey:
    key: str


def _problem(needed: Reference, namespace: str, find: Find) -> str | _NoKey:
    obj = find(needed.kind, namespace, needed.name)
    if obj is None:
        return f'{needed.kind} "{needed.name}" not found'
    keys = keys_of(obj)
    return next((_NoKey(key) for key in needed.keys if key not in keys), "")


def keys_of(obj: Raw) -> frozenset[str]:
    """Return the keys of a ConfigMap or a Secret."""
    return frozenset((*get(obj, "data", ()), *get(obj, "binaryData", ())))


def _of_volume(volume: Raw) -> Iterator[Reference]:
    projected = get(volume, "projected.sources", ())
    for source in (volume, *projected):
        yield from _reference(CONFIG_MAP, source.get("configMap"), "name")
        # A volume has `secretName`, a source of a projected volume has `name`.
        yield from _reference(SECRET, source.get("secret"), "secretName", "name")


def _of_environment(container: Raw) -> Iterator[Reference]:
    for source in get(container, "envFrom", ()):
        yield from _reference(CONFIG_MAP, source.get("configMapRef"), "name")
        yield from _reference(SECRET, source.get("secretRef"), "name")
    for variable in get(container, "env", ()):
        source = get(variable, "valueFrom", {})
        yield from _reference(CONFIG_MAP, source.get("configMapKeyRef"), "name")
        yield from _reference(SECRET, source.get("secretKeyRef"), "name")


def _reference(kind: str, source: Raw | None, *names: str) -> Iterator[Reference]:
    if source is None or source.get("optional"):
        return
    name = next((source[each] for each in names if source.get(each)), "")
    keys = [source["key"]] if "key" in source else [it["key"] for it in get(source, "items", ())]
    if name and name != _AUTHORITY:
        yield Reference(kind, name, tuple(keys))


def _containers(pod: Raw) -> Iterator[Raw]:
    for part in ("initContainers", "containers"):
        yield from spec_of(pod).get(part) or ()
