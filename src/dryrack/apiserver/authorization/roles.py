"""
The default roles and bindings, which a real server creates for itself.

The data comes from a real server. Only clusters with RBAC read it.
"""

import gzip
from importlib import resources

import msgspec

from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import Release


def default_roles(release: Release) -> list[Raw]:
    """Return the roles and bindings of the cluster and the system's namespaces."""
    name = f"roles-{release.value}.json.gz"
    data = resources.files(__package__).joinpath(name).read_bytes()
    roles: list[Raw] = msgspec.json.decode(gzip.decompress(data))
    return roles
