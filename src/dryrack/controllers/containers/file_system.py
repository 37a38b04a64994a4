"""
The file tree of a container: the root of its image, its volumes, and what comes with its devices.

The root has the directories and files that scripts expect, not those of the image, because dryrack
does not download images.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from dryrack.controllers.containers.environment import (
    Find,
    contents_of,
    field_of,
    host_name_of,
    resource_of,
)
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.raw import Raw
from dryrack.shell.files import Entries, Files, Mount, Volume

_DIRECTORIES = (
    *("bin", "dev", "etc", "home", "lib", "mnt", "opt", "proc", "root", "run", "sbin", "srv"),
    *("sys", "tmp", "usr", "usr/bin", "usr/local", "usr/local/bin", "var", "var/lib", "var/log"),
    "var/run",
)
_DEVICES = ("null", "zero", "random", "urandom", "stdin", "stdout", "stderr", "tty")

Mint = Callable[[Raw, Raw], str]
"""Returns a token for a pod, as a `serviceAccountToken` source describes it."""


def root_of(pod: Raw, device_nodes: Iterable[str], termination_log: str) -> Volume:
    """Return the root of a new container."""
    name = host_name_of(pod)
    address = status_of(pod).get("podIP", "127.0.0.1")
    root: dict[str, bytes | None] = dict.fromkeys(_DIRECTORIES)
    root |= {f"dev/{each}": b"" for each in _DEVICES}
    root |= {
        "etc/hostname": f"{name}\n".encode(),
        "etc/hosts": f"127.0.0.1\tlocalhost\n{address}\t{name}\n".encode(),
        "etc/resolv.conf": _resolver(pod).encode(),
        "etc/os-release": b'NAME="dryrack"\nID=dryrack\n',
    }
    volume = Volume(root)
    files = Files(volume)
    for path in (*device_nodes, termination_log):
        directory = path.rpartition("/")[0] or "/"
        files.make_directory(directory, with_parents=True)
        files.write(path, b"")
    return volume


def _resolver(pod: Raw) -> str:
    namespace = pod["metadata"].get("namespace", "default")
    domains = f"{namespace}.svc.cluster.local svc.cluster.local cluster.local"
    return f"search {domains}\nnameserver 10.96.0.10\noptions ndots:5\n"


class Volumes:
    """The volumes of one pod, and the files that its node shares with all pods."""

    def __init__(self, pod: Raw, find: Find, mint: Mint | None, node_files: Volume) -> None:
        self._pod = pod
        self._find = find
        self._mint = mint
        self._node_files = node_files
        self._volumes: dict[str, Volume] = {}
        self._tokens: dict[str, bytes] = {}

    def mounts(self, container: Raw) -> Sequence[Mount]:
        """Return the mounts of a container, in the order of its `volumeMounts`."""
        by_name = {each["name"]: each for each in get(self._pod, "spec.volumes", ())}
        mounts: list[Mount] = []
        for each in get(container, "volumeMounts", ()):
            volume = by_name.get(each["name"])
            if volume is None:
                continue
            below = each.get("subPath", "")
            if "hostPath" in volume:
                below = "/".join((volume["hostPath"].get("path", "").strip("/"), below)).strip("/")
            path = "/" + each["mountPath"].strip("/")
            content = self._volume(volume)
            is_read_only = bool(each.get("readOnly")) or content.source is not None
            mounts.append(Mount(path, content, below, is_read_only))
        return mounts

    def _volume(self, volume: Raw) -> Volume:
        if "hostPath" in volume:
            return self._node_files
        name = volume["name"]
        if name not in self._volumes:
            reads = {"configMap", "secret", "projected", "downwardAPI"} & volume.keys()
            source = (lambda: self._entries(volume)) if reads else None
            self._volumes[name] = Volume(source=source)
        return self._volumes[name]

    def _entries(self, volume: Raw) -> Entries:
        entries: dict[str, bytes | None] = {}
        for source in get(volume, "projected.sources", ()) or (volume,):
            if "configMap" in source:
                entries |= self._object_entries("configmaps", source["configMap"])
            if "secret" in source:
                entries |= self._object_entries("secrets", source["secret"])
            if "downwardAPI" in source:
                entries |= self._downward_entries(source["downwardAPI"])
            if "serviceAccountToken" in source:
                reference = source["serviceAccountToken"]
                entries[reference.get("path", "token")] = self._token(reference)
        for path in list(entries):
            # The directories above a file exist.
            parts = path.split("/")[:-1]
            for count in range(1, len(parts) + 1):
                entries.setdefault("/".join(parts[:count]), None)
        return entries

    def _object_entries(self, resource: str, reference: Raw) -> Mapping[str, bytes]:
        namespace = self._pod["metadata"].get("namespace", "")
        name = reference.get("name") or reference.get("secretName", "")
        contents = contents_of(self._find(resource, namespace, name))
        items = get(reference, "items", ())
        if not items:
            return contents
        return {each["path"]: contents[each["key"]] for each in items if each["key"] in contents}

    def _downward_entries(self, reference: Raw) -> Mapping[str, bytes]:
        entries: dict[str, bytes] = {}
        for each in get(reference, "items", ()):
            if "fieldRef" in each:
                text = field_of(self._pod, each["fieldRef"].get("fieldPath", ""))
            else:
                text = resource_of(self._pod, {}, get(each, "resourceFieldRef", {}), self._find)
            entries[each["path"]] = text.encode()
        return entries

    def _token(self, reference: Raw) -> bytes:
        key = f"{reference.get('audience', '')}/{reference.get('path', '')}"
        if key not in self._tokens:
            token = "" if self._mint is None else self._mint(self._pod, reference)
            self._tokens[key] = token.encode()
        return self._tokens[key]


def container_of(pod: Raw, name: str) -> Raw | None:
    """Return a container of any kind by its name."""
    for part in ("containers", "initContainers", "ephemeralContainers"):
        for each in spec_of(pod).get(part) or ():
            if each["name"] == name:
                found: Raw = each
                return found
    return None
