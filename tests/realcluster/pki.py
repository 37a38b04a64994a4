"""A certificate authority for one cluster, and the certificates that its parts need."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Longer than any test bed lives; a cluster is made anew, never renewed.
LIFETIME = datetime.timedelta(days=30)


_SIGNING = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs what one cluster trusts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("dryrack-test-bed", ())
        self.certificate = directory / "ca.crt"
        signed = self._signed(self._name, self._key, authority=True)
        _write(self.certificate, signed.public_bytes(serialization.Encoding.PEM))

    def client(self, user: str, *, groups: Sequence[str] = ()) -> Identity:
        """An identity that the API server knows as `user` in `groups`."""
        return self._issue(user.replace(":", "-"), _name(user, groups))

    def server(self, label: str, *, addresses: Sequence[str], names: Sequence[str]) -> Identity:
        """An identity to serve with."""
        alternatives: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address(address)) for address in addresses
        ]
        alternatives += [x509.DNSName(name) for name in names]
        return self._issue(
            label, _name(label, ()), alternatives=x509.SubjectAlternativeName(alternatives)
        )

    def _issue(
        self,
        label: str,
        subject: x509.Name,
        *,
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(subject, key, alternatives=alternatives)
        identity = Identity(self._directory / f"{label}.crt", self._directory / f"{label}.key")
        _write(identity.certificate, signed.public_bytes(serialization.Encoding.PEM))
        _write(identity.key, _private(key))
        return identity

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        authority: bool = False,
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        # Python 3.13 verifies strictly.
        builder = builder.add_extension(own, critical=False)
        if authority:
            builder = builder.add_extension(_SIGNING, critical=True)
        else:
            builder = builder.add_extension(issuer, critical=False)
            usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def service_account_key(directory: Path) -> Identity:
    """The key pair that service account tokens are signed and checked with."""
    key = ec.generate_private_key(ec.SECP256R1())
    identity = Identity(directory / "service-account.pub", directory / "service-account.key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write(identity.certificate, public)
    _write(identity.key, _private(key))
    return identity


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
