"""
Serve a control plane of this process on a loopback port, with keys and a kubeconfig.

For programs that a test starts; `service` is for clusters that people start.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.cluster import certificates, kubeconfig
from dryrack.cluster.private_files import write_private
from dryrack.cluster.process.serving import LOOPBACK, Address, listen, served
from dryrack.cluster.signing import EllipticKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from dryrack.cluster.certificates import Keys
    from dryrack.cluster.control_plane import ControlPlane, ControlPlaneOptions


def with_keys(options: ControlPlaneOptions, directory: Path) -> tuple[ControlPlaneOptions, Keys]:
    """Return the options with keys in a directory, by which clients verify the server."""
    keys = certificates.ensure(directory, [LOOPBACK], options.clock.now(), lasts=False)
    signing = EllipticKey(lambda: certificates.load_key(keys.accounts))
    authority = keys.authority.certificate.read_text()
    return replace(options, signing_key=signing, authority=authority), keys


@asynccontextmanager
async def serving_on_loopback(plane: ControlPlane, keys: Keys, name: str) -> AsyncIterator[Path]:
    """Serve for the length of a block; yield the kubeconfig, which is beside the keys."""
    with closing(listen(Address())) as listening:
        async with served(plane, listening, keys) as url:
            path = keys.directory / "kubeconfig"
            write_private(path, kubeconfig.own_text(name, url, keys).encode(), lasts=False)
            yield path
