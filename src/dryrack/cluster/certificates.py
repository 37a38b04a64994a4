"""
The keys of one cluster, as files in a directory that only its owner can read.

    ca.crt ca.key           the certificate authority of the cluster
    server.crt server.key   the certificate of the API server
    admin.crt admin.key     the client certificate in the kubeconfig: a member of system:masters
    accounts.key            the key that signs service account tokens

The first start creates them; a later start with the same directory uses them again, so that a
kubeconfig stays valid. A start also renews certificates of which less than a third of their
lifetime is left. The authority keeps its key and its name when it is renewed: clients that trust
the old certificate trust the new servers, and certificates that it signed before stay valid. The
key of service account tokens is never replaced.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.private_files import ensure_own_directory, write_private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

ADMIN = "kubernetes-admin"
ADMIN_GROUP = "system:masters"

# As kubeadm has it. Every start renews what comes near its end.
_LIFETIME = datetime.timedelta(days=365)
_AUTHORITY_LIFETIME = datetime.timedelta(days=3650)
# A certificate is renewed when less than this part of its lifetime is left: a cluster that starts
# once in half a year never meets an expired one.
_RENEWAL_PART = 3
# Which addresses the server's certificate is for.
_ADDRESSES = "server.addresses"
_PKCS8 = b"-----BEGIN PRIVATE KEY-----"
# Machines of one network may disagree about the time.
_BEFORE = datetime.timedelta(minutes=5)
_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class KeysError(DryrackError):
    """A key or certificate that cannot be read."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path
    lasts: bool = True

    def exist(self) -> bool:
        return self.certificate.exists() and self.key.exists()


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys of a cluster, by their files."""

    directory: Path
    lasts: bool = True
    """
    True if they outlive the process: then they are flushed to the disk before their first use.
    """

    @property
    def authority(self) -> Pair:
        return self._pair("ca")

    @property
    def server(self) -> Pair:
        return self._pair("server")

    @property
    def admin(self) -> Pair:
        return self._pair("admin")

    @property
    def accounts(self) -> Path:
        return self.directory / "accounts.key"

    def _pair(self, name: str) -> Pair:
        crt = self.directory / f"{name}.crt"
        key = self.directory / f"{name}.key"
        return Pair(crt, key, self.lasts)


def ensure(directory: Path, addresses: Sequence[str], now: float, *, lasts: bool = True) -> Keys:
    """
    Return the keys in `directory`; create or renew those that need it.

    A key is created if it is missing, and that of the server if it does not fit the addresses.
    """
    ensure_own_directory(directory)
    keys = Keys(directory, lasts)
    _make(keys, addresses, datetime.datetime.fromtimestamp(now, datetime.UTC))
    return keys


class Meanwhile:
    """
    Keys that another process creates or renews while this one does something else.

    If that process fails, this one tries again, and raises what is wrong. Reading certificates
    takes a library that is slow to load; this process loads it only then.
    """

    def __init__(
        self, directory: Path, addresses: Sequence[str], now: float, *, lasts: bool = True
    ) -> None:
        self._ensure = partial(ensure, directory, addresses, now, lasts=lasts)
        self._keys = Keys(directory, lasts)
        self._is_made = False
        self._child = os.fork()
        if self._child == 0:
            self._make()

    def _make(self) -> None:
        code = 1
        try:
            with suppress(Exception):
                self._ensure()
                code = 0
        finally:
            # Nothing of the parent may run a second time here.
            os._exit(code)

    def keys(self) -> Keys:
        """Wait for the other process, and return the keys."""
        self.close()
        return self._keys if self._is_made else self._ensure()

    def close(self) -> None:
        """Wait until the other process has ended."""
        if self._child:
            _, status = os.waitpid(self._child, 0)
            self._is_made = status == 0
            self._child = 0


def _make(keys: Keys, addresses: Sequence[str], now: datetime.datetime) -> None:
    authority = Authority.ensure(keys.authority, now)
    served = keys.directory / _ADDRESSES
    listed = "\n".join(sorted(addresses))
    is_fitting = served.exists() and served.read_text() == listed
    if not is_fitting or not authority.vouches_for(keys.server):
        authority.issue(keys.server, "kube-apiserver", addresses=(*_NAMES, *addresses))
        write_private(served, listed.encode(), lasts=keys.lasts)
    if not authority.vouches_for(keys.admin):
        authority.issue(keys.admin, ADMIN, ADMIN_GROUP)
    if keys.accounts.exists():
        # A damaged key is an error now, not when the first token is signed.
        load_key(keys.accounts)
    else:
        write_key(keys.accounts, lasts=keys.lasts)


def _is_fresh(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """Return whether a certificate is valid, and for long enough."""
    begins = certificate.not_valid_before_utc
    ends = certificate.not_valid_after_utc
    return begins <= now and (ends - now) * _RENEWAL_PART >= ends - begins


def load_certificate(path: Path) -> x509.Certificate:
    """Return the certificate in a file."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise KeysError(
            f"{path}: not a certificate in PEM; restore it, or remove {path.parent} to create new "
            "keys, which makes kubeconfigs and tokens of this cluster invalid"
        ) from None


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs the certificates of one cluster."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    now: datetime.datetime

    @classmethod
    def ensure(cls, pair: Pair, now: datetime.datetime) -> Authority:
        """Return the authority in these files, created or renewed if it needs it."""
        from cryptography import x509

        if pair.exist():
            key = load_key(pair.key)
            certificate = load_certificate(pair.certificate)
            # What it signs ends before it does.
            if _is_fresh(certificate, now) and certificate.not_valid_after_utc >= now + _LIFETIME:
                return cls(certificate, key, now)
            name = certificate.subject
        else:
            key = _new_key()
            name = _subject("dryrack")
        builder = _builder(name, key, now, _AUTHORITY_LIFETIME).issuer_name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        # Python 3.13 and others verify strictly: an authority says what its key is for.
        builder = builder.add_extension(_signing_usage(), critical=True)
        certificate = _sign(builder, key)
        _write_pair(pair, certificate, key)
        return cls(certificate, key, now)

    def vouches_for(self, pair: Pair) -> bool:
        """Return whether a pair is complete, signed by this authority and valid for long enough."""
        from cryptography.exceptions import InvalidSignature

        if not pair.exist():
            return False
        certificate = load_certificate(pair.certificate)
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (InvalidSignature, ValueError, TypeError):
            return False
        # A process that was killed while it renewed a pair may have replaced the key alone.
        has_key = load_key(pair.key).public_key() == certificate.public_key()
        return has_key and _is_fresh(certificate, self.now)

    def issue(self, pair: Pair, name: str, *groups: str, addresses: Sequence[str] = ()) -> None:
        """Return a certificate for a server at `addresses`, or for a client if there are none."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if addresses else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(_subject(name, *groups), key, self.now)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(issuer, critical=False)
        )
        if addresses:
            builder = builder.add_extension(_alternatives(addresses), critical=False)
        _write_pair(pair, _sign(builder, self.key), key)


def _builder(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    lifetime: datetime.timedelta = _LIFETIME,
) -> x509.CertificateBuilder:
    from cryptography import x509

    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + lifetime)
        .add_extension(own, critical=False)
    )


def _signing_usage() -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
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


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _subject(name: str, *groups: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternatives(addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    from cryptography import x509

    found: list[x509.GeneralName] = []
    for address in dict.fromkeys(addresses):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            found.append(x509.DNSName(address))
    return x509.SubjectAlternativeName(found)


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def write_key(path: Path, *, lasts: bool) -> None:
    """Write a new private key without a certificate."""
    write_private(path, _pem(_new_key()), lasts=lasts)


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in a file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeysError(
            f"{path}: not a key on an elliptic curve in PEM; restore it, or remove {path.parent} "
            "to create new keys, which makes kubeconfigs and tokens of this cluster invalid"
        )
    return key


def read_client_key(path: Path) -> bytes:
    """
    Return the key in a file as SEC1 ("EC PRIVATE KEY").

    Java's fabric8 client takes a key in PKCS #8 for an RSA key. Directories of earlier versions
    hold such keys.
    """
    content = path.read_bytes()
    return _pem(load_key(path)) if content.startswith(_PKCS8) else content


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as SEC1, which every client library reads."""
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write_pair(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives import serialization

    encoded = certificate.public_bytes(serialization.Encoding.PEM)
    write_private(pair.key, _pem(key), lasts=pair.lasts)
    write_private(pair.certificate, encoded, lasts=pair.lasts)
