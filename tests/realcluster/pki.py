"""A certificate authority for one cluster, and the certificates that its parts need."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, TypeAlias

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dryrack.cluster import certificates
from dryrack.cluster.certificates import Pair, load_key, write_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Identity: TypeAlias = Pair


class Authority:
    """Signs what one cluster trusts; a cluster is made anew, never renewed."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._directory = directory
        own = self._identity("ca")
        self.certificate = own.certificate
        self._signing = certificates.Authority.ensure(own, datetime.datetime.now(datetime.UTC))

    def client(self, user: str, *, groups: Sequence[str] = ()) -> Identity:
        """An identity that the API server knows as `user` in `groups`."""
        identity = self._identity(user.replace(":", "-"))
        self._signing.issue(identity, user, *groups)
        return identity

    def server(self, label: str, *, addresses: Sequence[str], names: Sequence[str]) -> Identity:
        """An identity to serve with."""
        identity = self._identity(label)
        self._signing.issue(identity, label, addresses=(*addresses, *names))
        return identity

    def _identity(self, label: str) -> Identity:
        certificate, key = (self._directory / f"{label}.{ending}" for ending in ("crt", "key"))
        return Identity(certificate, key, lasts=False)


def service_account_key(directory: Path) -> Identity:
    """The key pair that service account tokens are signed and checked with."""
    identity = Identity(directory / "service-account.pub", directory / "service-account.key")
    write_key(identity.key, lasts=False)
    public = load_key(identity.key).public_key()
    identity.certificate.write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return identity
