"""The PersistentVolumeClaims of a pod: those that it names, and those that come along with it."""

from dryrack.client.informer import Name
from dryrack.controllers.objects import spec_of
from dryrack.kinds.raw import Raw


def claims_of(pod: Raw) -> list[Name]:
    """By namespace and name, whether or not they are there."""
    found: list[Name] = []
    namespace, pod_name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    for volume in spec_of(pod).get("volumes") or ():
        source = volume.get("persistentVolumeClaim")
        if source:
            found.append(Name(namespace, source["claimName"]))
        elif volume.get("ephemeral"):
            found.append(Name(namespace, f"{pod_name}-{volume['name']}"))
    return found
