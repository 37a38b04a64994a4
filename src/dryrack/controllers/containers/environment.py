"""
The environment variables of a container, and the words of its command.

Values come from the container, the pod, ConfigMaps, Secrets, and the devices. `$(NAME)` in a value
or a word is replaced as the kubelet does it.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.raw import Raw

_REFERENCE = re.compile(r"\$\$|\$\(([^()]+)\)")
_KEYED = re.compile(r"(metadata\.(?:labels|annotations))\['([^']+)'\]")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Find(Protocol):
    """Returns an object by its resource (`configmaps`), namespace and name."""

    def __call__(self, resource: str, namespace: str, name: str) -> Raw | None: ...


def environment_of(
    pod: Raw, container: Raw, find: Find, devices: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the variables of a container in the order in which it gets them."""
    variables = {"PATH": _PATH, "HOSTNAME": host_name_of(pod)}
    variables |= _service_variables(find)
    variables |= dict(_import_variables(pod, container, find))
    for each in get(container, "env", ()):
        value = _value_of(pod, container, each, find)
        if value is not None:
            is_literal = not each.get("valueFrom")
            variables[each["name"]] = expand(value, variables) if is_literal else value
    # Devices come last: the runtime adds what CDI names.
    variables |= dict(devices)
    variables.setdefault("HOME", "/root")
    return variables


def command_of(container: Raw, variables: Mapping[str, str]) -> list[str]:
    """Return the words that the container starts with; the image decides if there are none."""
    words = [*get(container, "command", ()), *get(container, "args", ())]
    return [expand(str(each), variables) for each in words]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)`; a name without a value stays as it is, and `$$` is a dollar sign."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def host_name_of(pod: Raw) -> str:
    spec = spec_of(pod)
    if spec.get("hostNetwork"):
        return str(spec.get("nodeName", ""))
    return str(spec.get("hostname") or pod["metadata"]["name"])[:63]


def field_of(pod: Raw, path: str) -> str:
    """Return what a `fieldRef` selects."""
    if path in ("metadata.labels", "metadata.annotations"):
        values = get(pod, path, {})
        return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
    if keyed := _KEYED.fullmatch(path):
        return str(get(pod, keyed[1], {}).get(keyed[2], ""))
    if path == "status.podIPs":
        return ",".join(each["ip"] for each in get(pod, path, ()))
    if path == "status.hostIPs":
        return ",".join(each["ip"] for each in get(pod, path, ()))
    if path == "spec.serviceAccountName":
        return str(spec_of(pod).get("serviceAccountName", "default"))
    return str(get(pod, path, ""))


def resource_of(pod: Raw, container: Raw, reference: Raw, find: Find) -> str:
    """Return what a `resourceFieldRef` selects, in units of its divisor, rounded up."""
    name = reference.get("containerName")
    if name:
        every = (*get(pod, "spec.containers", ()), *get(pod, "spec.initContainers", ()))
        container = next((each for each in every if each["name"] == name), container)
    kind, _, resource = reference.get("resource", "").partition(".")
    amounts = get(container, f"resources.{kind}", {})
    amount = amounts.get(resource)
    if amount is None and kind == "limits":
        # Without a limit, the container can use all that the node has.
        node = find("nodes", "", spec_of(pod).get("nodeName", "")) or {}
        amount = status_of(node).get("allocatable", {}).get(resource)
    divisor = reference.get("divisor") or "1"
    try:
        nanos = Quantity.parse(str(amount or 0)).nanos
        unit = Quantity.parse(str(divisor)).nanos or Quantity.parse("1").nanos
    except QuantityError:
        return "0"
    return str(-(-nanos // unit))


def _service_variables(find: Find) -> dict[str, str]:
    service = find("services", "default", "kubernetes")
    if service is None:
        return {}
    host = str(get(service, "spec.clusterIP", ""))
    port = str(get(service, "spec.ports", [{}])[0].get("port", 443))
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
        "KUBERNETES_PORT": f"tcp://{host}:{port}",
    }


def _import_variables(pod: Raw, container: Raw, find: Find) -> Iterator[tuple[str, str]]:
    namespace = pod["metadata"].get("namespace", "")
    for source in get(container, "envFrom", ()):
        prefix = source.get("prefix", "")
        for key, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            if key in source:
                for name, value in sorted(texts_of(find, resource, namespace, source[key])):
                    yield f"{prefix}{name}", value


def _value_of(pod: Raw, container: Raw, variable: Raw, find: Find) -> str | None:
    source = get(variable, "valueFrom", {})
    if not source:
        return str(variable.get("value", ""))
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"].get("fieldPath", ""))
    if "resourceFieldRef" in source:
        return resource_of(pod, container, source["resourceFieldRef"], find)
    namespace = pod["metadata"].get("namespace", "")
    for key, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if key in source:
            values = dict(texts_of(find, resource, namespace, source[key]))
            return values.get(source[key].get("key", ""))
    return None


def texts_of(
    find: Find, resource: str, namespace: str, reference: Raw
) -> Sequence[tuple[str, str]]:
    """Return the entries of a ConfigMap or a Secret as text."""
    contents = contents_of(find(resource, namespace, reference.get("name", "")))
    return [(key, value.decode(errors="replace")) for key, value in contents.items()]


def contents_of(obj: Raw | None) -> Mapping[str, bytes]:
    """Return the entries of a ConfigMap or a Secret."""
    if obj is None:
        return {}
    is_secret = obj.get("kind") == "Secret" or "type" in obj
    data: Mapping[str, Any] = get(obj, "data", {})
    contents = {
        key: decode_base64(value) if is_secret else str(value).encode()
        for key, value in data.items()
    }
    return contents | {
        key: decode_base64(value) for key, value in get(obj, "binaryData", {}).items()
    }


def decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""
