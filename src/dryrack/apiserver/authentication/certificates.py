"""
The user that a client certificate names: its common name, in the groups that it has as
organizations. That the cluster's authority signed it was checked when the connection was made.
"""

from collections.abc import Iterable, Mapping

from dryrack.client.transport import User


def user_of_certificate(certificate: Mapping[str, object]) -> User | None:
    """Return the user of a certificate in the form of `ssl.SSLSocket.getpeercert()`, or None."""
    pairs = list(_pairs(certificate.get("subject", ())))
    names = [value for name, value in pairs if name == "commonName"]
    if not names or not names[0]:
        return None
    groups = tuple(value for name, value in pairs if name == "organizationName")
    return User(names[0], groups)


def _pairs(subject: object) -> Iterable[tuple[str, str]]:
    assert isinstance(subject, tuple), f"no subject of a certificate: {subject!r}"
    for relative in subject:
        yield from relative
