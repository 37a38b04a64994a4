"""
The keys of one cluster, as files in a directory that only its owner can read.

    ca.crt ca.key           the authority that the cluster trusts, and nobody else
    server.crt server.key   what the API server shows
    admin.crt admin.key     what the kubeconfig carries: a member of system:masters
    accounts.key            what service account tokens are signed with

Made once, at the first start; a later start with the same directory finds them again, so a
kubeconfig that was handed out keeps its worth.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

ADMIN = "kubernetes-admin"
ADMIN_GROUP = "system:masters"

# A cluster for tests is made anew long before; one that is kept for years is not for tests.
_LIFETIME = datetime.timedelta(days=365)
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
    """Whether they outlive the process, and so have to be on the disk before anybody uses them."""

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
        crt, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        return Pair(crt, key, self.lasts)


def ensure(directory: Path, addresses: Sequence[str], now: float, *, lasts: bool = True) -> Keys:
    """The keys in `directory`, made if they are not there or do not fit the addresses."""
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    keys = Keys(directory, lasts)
    if not _are_there(keys, addresses):
        _make(keys, addresses, datetime.datetime.fromtimestamp(now, datetime.UTC))
        (directory / _ADDRESSES).write_text(_listed(addresses))
    return keys


class Meanwhile:
    """
    Keys that a process of its own makes while this one does something else.

    Should that process fail, they are made here, and whatever is wrong is told here.
    """

    def __init__(
        self, directory: Path, addresses: Sequence[str], now: float, *, lasts: bool = True
    ) -> None:
        self._ensure = partial(ensure, directory, addresses, now, lasts=lasts)
        self._child = 0
        if not _are_there(Keys(directory), addresses):
            self._child = os.fork()
            if self._child == 0:
                self._make()

    def _make(self) -> None:
        try:
            self._ensure()
        finally:
            # Nothing of the parent may run a second time here.
            os._exit(0)

    def keys(self) -> Keys:
        """Waits for them."""
        self.close()
        return self._ensure()

    def close(self) -> None:
        """Nobody writes any more."""
        if self._child:
            os.waitpid(self._child, 0)
            self._child = 0


def _are_there(keys: Keys, addresses: Sequence[str]) -> bool:
    served = keys.directory / _ADDRESSES
    complete = all(pair.exist() for pair in (keys.authority, keys.server, keys.admin))
    return (
        complete
        and keys.accounts.exists()
        and served.exists()
        and served.read_text() == _listed(addresses)
    )


def _listed(addresses: Sequence[str]) -> str:
    return "\n".join(sorted(addresses))


def _make(keys: Keys, addresses: Sequence[str], now: datetime.datetime) -> None:
    authority = Authority.ensure(keys.authority, now)
    authority.issue(keys.server, "kube-apiserver", addresses=(*_NAMES, *addresses))
    if not keys.admin.exist():
        authority.issue(keys.admin, ADMIN, ADMIN_GROUP)
    if not keys.accounts.exists():
        write_key(keys.accounts, lasts=keys.lasts)


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs what one cluster trusts."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    now: datetime.datetime

    @classmethod
    def ensure(cls, pair: Pair, now: datetime.datetime) -> Authority:
        """The authority in these files, made if they are not there."""
        from cryptography import x509

        if pair.exist():
            key = load_key(pair.key)
            return cls(x509.load_pem_x509_certificate(pair.certificate.read_bytes()), key, now)
        key, name = _new_key(), _subject("dryrack")
        builder = _builder(name, key, now).issuer_name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        # Python 3.13 and others verify strictly: an authority says what its key is for.
        builder = builder.add_extension(_signing_usage(), critical=True)
        certificate = _signed(builder, key)
        _write_pair(pair, certificate, key)
        return cls(certificate, key, now)

    def issue(self, pair: Pair, name: str, *groups: str, addresses: Sequence[str] = ()) -> None:
        """A certificate for a server at `addresses`, or for a client if there are none."""
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
        _write_pair(pair, _signed(builder, self.key), key)


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _LIFETIME)
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


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
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
    """A new key by itself, to sign with."""
    write_private(path, _pem(_new_key()), lasts=lasts)


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), f"{path}: not a key on an elliptic curve"
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


def write_private(path: Path, content: bytes, *, lasts: bool = True) -> None:
    """
    Whole or not at all, and never readable by others, not even for a moment.

    What does not last is not waited for until the disk has it: it goes with its process. A link
    stays a link: people keep their kubeconfig elsewhere. If it cannot be written, the file is as
    it was, and there is none beside it.
    """
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        _write(temporary, content, lasts=lasts)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write(path: Path, content: bytes, *, lasts: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if lasts:
            os.fsync(file.fileno())
