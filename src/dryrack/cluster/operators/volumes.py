"""
The files that a container has: ConfigMaps, Secrets, tokens, and fields of the pod.

`files_of` computes the content of a volume, `write_files` makes a folder equal to it. Both are
repeated while the program runs, because programs wait for a Secret that they have written
themselves, and tokens are refreshed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.controllers.containers.environment import contents_of, expand, field_of, resource_of
from dryrack.kinds.paths import get, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dryrack.controllers.containers.environment import Find
    from dryrack.kinds.raw import Raw

_FILE_MODE = 0o644
_AUTHORITY = "kube-root-ca.crt"
_TOKEN_SECONDS = 3600
_CONFIG_MAP_PARTS = (("configMap", "configmaps"), ("secret", "secrets"))


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The token of a projected volume."""

    audience: str
    seconds: int


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume of the pod at a path of the container."""

    path: str
    volume: Raw
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """The sources of the files of volumes."""

    pod: Raw
    container: Raw
    find: Find
    tokens: Mapping[TokenRequest, str]
    authority: bytes
    """The certificates of the API server, for clusters that publish them in no ConfigMap."""


def mounts_of(pod: Raw, container: Raw, variables: Mapping[str, str]) -> tuple[Mount, ...]:
    """Return the mounts of a container."""
    volumes = {each["name"]: each for each in get(pod, "spec.volumes", ())}
    return tuple(
        Mount(
            each["mountPath"].rstrip("/") or "/",
            volumes[each["name"]],
            each.get("subPath") or expand(each.get("subPathExpr", ""), variables),
        )
        for each in get(container, "volumeMounts", ())
        if each["name"] in volumes
    )


def token_requests(pod: Raw) -> Iterator[TokenRequest]:
    """Yield the tokens that the volumes of a pod have."""
    for volume in get(pod, "spec.volumes", ()):
        for source in get(volume, "projected.sources", ()):
            if "serviceAccountToken" in source:
                yield _token_request(source["serviceAccountToken"])


def _token_request(source: Raw) -> TokenRequest:
    return TokenRequest(
        source.get("audience", ""), source.get("expirationSeconds") or _TOKEN_SECONDS
    )


def references_of(pod: Raw, container: Raw) -> Iterator[tuple[str, str]]:
    """Yield the resource and the name of each ConfigMap and Secret that a container reads."""
    for volume in get(pod, "spec.volumes", ()):
        for source in (volume, *get(volume, "projected.sources", ())):
            for part, resource in _CONFIG_MAP_PARTS:
                if part in source:
                    yield resource, _name_of(source[part])
    for each in get(container, "envFrom", ()):
        for part, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            if part in each:
                yield resource, each[part].get("name", "")
    for each in get(container, "env", ()):
        for part, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            if part in get(each, "valueFrom", {}):
                yield resource, each["valueFrom"][part].get("name", "")


def _name_of(source: Raw) -> str:
    # A Secret in a volume has `secretName`, in a projected volume it has `name`.
    return str(source.get("secretName") or source.get("name", ""))


def files_of(volume: Raw, contents: Contents) -> dict[str, File] | None:
    """Return the files of a volume by their paths; None if the program writes them itself."""
    if not {"configMap", "secret", "downwardAPI", "projected"} & volume.keys():
        return None
    files: dict[str, File] = {}
    projected = get(volume, "projected", {})
    default_mode = next(
        (
            each["defaultMode"]
            for each in volume.values()
            if isinstance(each, dict) and each.get("defaultMode") is not None
        ),
        _FILE_MODE,
    )
    for source in get(projected, "sources", ()) if projected else (volume,):
        if "downwardAPI" in source:
            for item in get(source, "downwardAPI.items", ()):
                content = _downward(item, contents).encode()
                files[item["path"]] = File(content, item.get("mode") or default_mode)
        if "serviceAccountToken" in source:
            asked = source["serviceAccountToken"]
            token = contents.tokens.get(_token_request(asked), "")
            files[asked["path"]] = File(token.encode(), default_mode)
        for part, resource in _CONFIG_MAP_PARTS:
            if part in source:
                data = _data(resource, _name_of(source[part]), contents)
                items = get(source[part], "items", [{"key": key, "path": key} for key in data])
                for item in items:
                    if item["key"] in data:
                        mode = item.get("mode") or default_mode
                        files[item["path"]] = File(data[item["key"]], mode)
    return files


def _downward(item: Raw, contents: Contents) -> str:
    if "fieldRef" in item:
        return field_of(contents.pod, item["fieldRef"].get("fieldPath", ""))
    reference = get(item, "resourceFieldRef", {})
    return resource_of(contents.pod, contents.container, reference, contents.find)


def _data(resource: str, name: str, contents: Contents) -> Mapping[str, bytes]:
    obj = contents.find(resource, contents.pod["metadata"]["namespace"], name)
    if obj is None:
        return {"ca.crt": contents.authority} if name == _AUTHORITY else {}
    return contents_of(obj)


def write_files(folder: Path, files: Mapping[str, File]) -> bool:
    """
    Make the files of a folder equal to `files`; return whether something changed.

    A file is replaced as a whole: a program that reads it sees the old or the new content.
    """
    has_changed = False
    for name, file in files.items():
        path = folder / name
        if path.is_file() and path.read_bytes() == file.content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.touch(0o600)
        new.write_bytes(file.content)
        # The owner must be able to replace the file, whatever the mode says about others.
        new.chmod(file.mode & 0o777 | 0o600)
        new.replace(path)
        has_changed = True
    present = [each for each in folder.rglob("*") if each.is_file()]
    for path in present:
        if str(path.relative_to(folder)) not in files:
            path.unlink()
            has_changed = True
    return has_changed


def host_path(volume: Raw) -> str:
    """Return the path on the machine that a hostPath volume names, or ""."""
    return str(get(volume, "hostPath.path", ""))


def container_of(pod: Raw, name: str) -> Raw | None:
    """Return a container of the pod by its name; without a name, the default one."""
    containers = get(pod, "spec.containers", ())
    annotations = get(pod, "metadata.annotations", {})
    name = name or annotations.get("kubectl.kubernetes.io/default-container", "")
    return next((each for each in containers if name in ("", each["name"])), None)


def container_names(pod: Raw) -> list[str]:
    return [each["name"] for each in get(spec_of(pod), "containers", ())]
