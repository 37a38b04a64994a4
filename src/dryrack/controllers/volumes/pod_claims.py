"""The PersistentVolumeClaims of a pod: those that it names, and those that come along with it."""

from dryrack.client.informer import Name
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw


def claims_of(pod: Raw) -> list[Name]:
    """By namespace and name, whether or not they are there."""
    found: list[Name] = []
    namespace = pod["metadata"]["namespace"]
    pod_name = pod["metadata"]["name"]
    for volume in get(pod, "spec.volumes", ()):
        source = volume.get("persistentVolumeClaim")
        if source:
            found.append(Name(namespace, source["claimName"]))
        elif volume.get("ephemeral"):
            found.append(Name(namespace, f"{pod_name}-{volume['name']}"))
    return found
