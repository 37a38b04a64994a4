"""
Build the kubeconfig of a cluster: one file with everything that a client needs.

`merge` adds it to the kubeconfig of a user and makes its context the current one. `without` removes
it and makes the previous context current again. The entry of the context remembers the previous
one, as an extension, so that clusters can be removed in any order.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.certificates import read_client_key
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dryrack.cluster.certificates import Keys
    from dryrack.kinds.raw import Raw

_LISTS = ("clusters", "contexts", "users")
_PREVIOUS = "dryrack/previous-context"


class KubeconfigError(DryrackError):
    """A kubeconfig cannot be read."""


def entry_name(cluster: str) -> str:
    """Return the name of a cluster in kubeconfigs, which has a prefix as `kind-…` has."""
    return f"dryrack-{cluster}"


def kubeconfig(cluster: str, server: str, keys: Keys) -> Raw:
    name = entry_name(cluster)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "certificate-authority-data": _data(keys.authority.certificate.read_bytes()),
                    "server": server,
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _data(keys.admin.certificate.read_bytes()),
                    "client-key-data": _data(read_client_key(keys.admin.key)),
                },
            }
        ],
    }


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def merge(theirs: Raw, ours: Raw) -> Raw:
    """Return the user's configuration with our entries, and with our context as the current one."""
    result = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **theirs}
    for key in _LISTS:
        names = {entry["name"] for entry in ours[key]}
        kept = [entry for entry in theirs.get(key) or () if entry.get("name") not in names]
        result[key] = [*kept, *ours[key]]
    name = ours["current-context"]
    current = theirs.get("current-context") or ""
    # A cluster that was killed is still in the file.
    previous = _previous_of(theirs, name) if current == name else current
    result["contexts"] = _with_previous(result["contexts"], {name: previous})
    return {**result, "current-context": name}


def without(theirs: Raw, cluster: str) -> Raw:
    """Return the user's configuration without the cluster; restore the previous context."""
    name = entry_name(cluster)
    result = dict(theirs)
    for key in _LISTS:
        result[key] = [entry for entry in theirs.get(key) or () if entry.get("name") != name]
    previous = _previous_of(theirs, name)
    contexts = [entry.get("name") for entry in result["contexts"]]
    after = [each for each in contexts if each and _previous_of(theirs, each) == name]
    result["contexts"] = _with_previous(result["contexts"], dict.fromkeys(after, previous))
    if theirs.get("current-context") == name:
        result["current-context"] = previous if previous in contexts else ""
    return result


def _previous_of(config: Raw, name: str) -> str:
    """Return the context that was the current one before the context `name`, or ""."""
    for entry in get(config, "contexts", ()):
        context = get(entry, "context", {})
        for each in get(context, "extensions", ()) if entry.get("name") == name else ():
            if each.get("name") == _PREVIOUS:
                return str(get(each, "extension.context") or "")
    return ""


def _with_previous(contexts: Sequence[Raw], previous: Mapping[str, str]) -> list[Raw]:
    """Return the contexts, of which those named in `previous` remember another previous one."""
    result = []
    for entry in contexts:
        name = str(entry.get("name"))
        if name in previous:
            context = dict(get(entry, "context", {}))
            others = [e for e in context.pop("extensions", None) or () if e["name"] != _PREVIOUS]
            if previous[name]:
                others += [{"name": _PREVIOUS, "extension": {"context": previous[name]}}]
            entry = {**entry, "context": {**context, **({"extensions": others} if others else {})}}
        result.append(entry)
    return result


def read(path: Path) -> Raw:
    """Return the content of a kubeconfig; {} if the file does not exist."""
    import yaml

    if not path.exists():
        return {}
    try:
        found = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigError(f"{path}: not YAML; {error}") from None
    if found is not None and not isinstance(found, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig; expected an object")
    found = found or {}
    for key in _LISTS:
        entries = found.get(key) or []
        kind = key.removesuffix("s")
        if not isinstance(entries, list) or not all(
            (isinstance(each, dict) and isinstance(each.get(kind) or {}, dict)) for each in entries
        ):
            raise KubeconfigError(f"{path}: {key}: expected a list of entries with name and {kind}")
    return found


def own_text(cluster: str, server: str, keys: Keys) -> str:
    """
    Return `kubeconfig` as YAML.

    Nothing in it needs quoting, and without a YAML library a cluster starts sooner.
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
