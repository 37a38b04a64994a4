"""
The kubeconfig of a cluster: everything that a client needs, in one file that can be copied.

`merged` adds it to somebody's own configuration and changes nothing else there.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.certificates import read_client_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dryrack.cluster.certificates import Keys
    from dryrack.kinds.raw import Raw

_LISTS = ("clusters", "contexts", "users")


class KubeconfigError(DryrackError):
    """Somebody's kubeconfig cannot be read."""


def entry_name(cluster: str) -> str:
    """What a cluster is called in kubeconfigs, in the manner of `kind-…`."""
    return f"dryrack-{cluster}"


def kubeconfig(cluster: str, server: str, keys: Keys) -> Raw:
    name = entry_name(cluster)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _cluster(server, keys)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "users": [{"name": name, "user": _user(keys)}],
    }


def _cluster(server: str, keys: Keys) -> Raw:
    return {
        "certificate-authority-data": _data(keys.authority.certificate.read_bytes()),
        "server": server,
    }


def _user(keys: Keys) -> Raw:
    return {
        "client-certificate-data": _data(keys.admin.certificate.read_bytes()),
        "client-key-data": _data(read_client_key(keys.admin.key)),
    }


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def merged(theirs: Raw, ours: Raw) -> Raw:
    """Their configuration with our entries in it, and our context as the current one."""
    result = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **theirs}
    for key in _LISTS:
        names = {entry["name"] for entry in ours[key]}
        kept = [entry for entry in theirs.get(key) or () if entry.get("name") not in names]
        result[key] = [*kept, *ours[key]]
    return {**result, "current-context": ours["current-context"]}


def without(theirs: Raw, cluster: str) -> Raw:
    """Their configuration with nothing of the cluster left in it."""
    name = entry_name(cluster)
    result = dict(theirs)
    for key in _LISTS:
        result[key] = [entry for entry in theirs.get(key) or () if entry.get("name") != name]
    if theirs.get("current-context") == name:
        result["current-context"] = ""
    return result


def read(path: Path) -> Raw:
    """What is in a kubeconfig; {} if there is none."""
    import yaml

    if not path.exists():
        return {}
    try:
        found = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigError(f"{path}: not YAML; {error}") from None
    if found is not None and not isinstance(found, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig; expected an object")
    return found or {}


def own_text(cluster: str, server: str, keys: Keys) -> str:
    """
    `kubeconfig` as YAML.

    Written by hand: nothing in it needs quoting, and who starts a cluster need not wait for a
    library that writes everything.
    """
    config = kubeconfig(cluster, server, keys)
    return "\n".join(_lines(config, "")) + "\n"


def _lines(value: Raw, indent: str) -> Iterator[str]:
    for key, each in value.items():
        if isinstance(each, dict):
            yield f"{indent}{key}:"
            yield from _lines(each, indent + "  ")
        elif isinstance(each, list):
            yield f"{indent}{key}:"
            for item in each:
                first, *rest = _lines(item, indent + "  ")
                yield f"{indent}- {first.lstrip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {each}"


def text(config: Raw) -> str:
    import yaml

    dumped: str = yaml.safe_dump(config, sort_keys=False)
    return dumped
