"""
ClusterTrustBundles and PodCertificateRequests of Kubernetes 1.37 and later.

No component of dryrack signs certificates, so a PodCertificateRequest keeps the status that a
signer of your own writes. The keys and the certificate in a request are not verified.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.meta import Naming
from dryrack.kinds.validation.names import Checker, checked, label, subdomain
from dryrack.kinds.validation.problems import (
    OMITTED,
    FieldProblem,
    Token,
    byte_length,
    invalid,
    not_supported,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_BUNDLE_BYTES_MAX = 1024 * 1024
_UID_BYTES_MAX = 128
_DAY_SECONDS = 24 * 60 * 60
_SECONDS_MIN = 60 * 60
_SECONDS_MAX = 91 * _DAY_SECONDS
_RESULTS = ("Issued", "Denied", "Failed")
_HIDDEN = "<value omitted>"
_BLOCK = re.compile(r"-----BEGIN ([^-]+)-----\n(.*?)-----END \1-----", re.S)


class TrustBundleStrategy(Strategy):
    """ClusterTrustBundles. A bundle for a signer has the name of the signer in its own name."""

    selectable_fields = ("spec.signerName",)
    field_refusal = "field label not supported: {label}"
    updates_unconditionally = False

    def __init__(self) -> None:
        # The name depends on the signer, so `problems` checks it.
        anything = Naming(lambda _: (), lambda _: ())
        super().__init__(_TrustBundleRules(namespaced=False, naming=anything))

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        found = [*_bundle_problems(obj, old)]
        signer = get(obj, "spec.signerName", "")
        if signer != get(old, "spec.signerName", ""):
            found.append(invalid("spec.signerName", signer, "field is immutable"))
        return found


class _TrustBundleRules(KindRules):
    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        return _bundle_problems(obj, None)


def _bundle_problems(bundle: Raw, old: Raw | None) -> Iterator[FieldProblem]:
    name = get(bundle, "metadata.name", "")
    spec = spec_of(bundle)
    signer = spec.get("signerName") or ""
    prefix = f"{signer.replace('/', ':')}:" if signer else ""
    if not signer and ":" in name:
        detail = 'ClusterTrustBundle without signer name must not have ":" in its name'
        yield invalid("metadata.name", name, detail)
    elif not name.startswith(prefix):
        detail = f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        yield invalid("metadata.name", name, detail)
    else:
        for complaint in subdomain(name.removeprefix(prefix)):
            yield invalid("metadata.name", name, complaint)
    if signer:
        yield from _signer_problems(signer)
    text = spec.get("trustBundle") or ""
    if old is None or text != get(old, "spec.trustBundle", ""):
        yield from _anchor_problems("spec.trustBundle", text)


def _anchor_problems(at: str, text: str) -> Iterator[FieldProblem]:
    """Check the certificates of a bundle; the messages do not show them."""
    from cryptography import x509

    if byte_length(text) > _BUNDLE_BYTES_MAX:
        yield too_long(at, _BUNDLE_BYTES_MAX)
        return
    positions: dict[bytes, list[int]] = {}
    complaints: list[str] = []
    for position, block in enumerate(_BLOCK.finditer(text)):
        if block[1] != "CERTIFICATE":
            complaints.append(f"entry {position} has bad block type: {block[1]}")
            continue
        if ":" in block[2]:
            complaints.append(f"entry {position} has PEM block headers")
            continue
        try:
            certificate = x509.load_pem_x509_certificate(block[0].encode())
            limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        except x509.ExtensionNotFound:
            complaints.append(f"entry {position} does not have the CA bit set")
            continue
        except ValueError:
            complaints.append(f"entry {position} does not parse as X.509")
            continue
        if not limits.value.ca:
            complaints.append(f"entry {position} does not have the CA bit set")
            continue
        positions.setdefault(certificate.tbs_certificate_bytes, []).append(position)
    if not complaints and not positions:
        complaints.append("at least one trust anchor must be provided")
    if not complaints:
        complaints += [
            f"duplicate trust anchor (indices [{' '.join(map(str, each))}])"
            for each in positions.values()
            if len(each) > 1
        ]
    yield from (invalid(at, _HIDDEN, each) for each in complaints)


def _signer_problems(signer: str) -> Iterator[FieldProblem]:
    at = "spec.signerName"
    if not signer:
        yield required(at)
        return
    domain, *path = signer.split("/")
    if len(path) != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(at, signer, detail)
        return
    yield from _segment_problems(domain, label)
    if "." not in domain:
        yield invalid(at, domain, "should be a domain with at least two segments separated by dots")
    yield from _segment_problems(path[0], subdomain)


def _segment_problems(segment: str, checker: Checker) -> Iterator[FieldProblem]:
    """Yield the problems of the first part between dots that has some."""
    for part in segment.split("."):
        if complaints := checker(part):
            for each in complaints:
                detail = f"validating label {quoted(part)}: {each}"
                yield invalid("spec.signerName", segment, detail)
            return


class PodCertificateRequestStrategy(Strategy):
    """PodCertificateRequests. The spec cannot change, nor the status once it has a result."""

    selectable_fields = ("spec.signerName", "spec.podName", "spec.nodeName")
    field_refusal = "field label not supported: {label}"
    updates_unconditionally = False

    def __init__(self) -> None:
        super().__init__(_CertificateRequestRules(namespaced=True, has_status=True))

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return tuple(_result_problems(status_of(obj), status_of(old)))
        if spec_of(obj) == spec_of(old):
            return ()
        return (invalid("spec", spec_of(obj), "field is immutable"),)


class _CertificateRequestRules(KindRules):
    def default(self, obj: Raw) -> Raw:
        return update_at(
            obj, "spec", lambda spec: set_missing(spec, {"maxExpirationSeconds": _DAY_SECONDS})
        )

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        signer = spec.get("signerName") or ""
        yield from _signer_problems(signer)
        for owner in ("pod", "serviceAccount", "node"):
            name = spec.get(f"{owner}Name") or ""
            yield from checked(f"spec.{owner}Name", name, subdomain)
            uid = spec.get(f"{owner}UID") or ""
            if not uid:
                yield invalid(f"spec.{owner}UID", uid, "must not be empty")
            if byte_length(uid) > _UID_BYTES_MAX:
                yield too_long(f"spec.{owner}UID", _UID_BYTES_MAX)
        is_own = f".{signer.partition('/')[0]}".endswith(".kubernetes.io")
        most = _DAY_SECONDS if is_own else _SECONDS_MAX
        seconds = spec.get("maxExpirationSeconds")
        if seconds is None:
            yield required("spec.maxExpirationSeconds", "must be set")
            return
        if not _SECONDS_MIN <= seconds <= most:
            detail = f"must be in the range [{_SECONDS_MIN}, {most}]"
            yield invalid("spec.maxExpirationSeconds", seconds, detail)
        keys = [bool(spec.get(key)) for key in ("pkixPublicKey", "proofOfPossession")]
        stub = bool(spec.get("stubPKCS10Request"))
        if (stub, *keys) not in ((True, False, False), (False, True, True)):
            detail = (
                "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must "
                "be set"
            )
            yield invalid("spec", OMITTED, detail)


def _result_problems(status: Raw, old: Raw) -> Iterator[FieldProblem]:
    conditions = get(status, "conditions", ())
    results = 0
    for position, each in enumerate(conditions):
        at = f"status.conditions[{position}]"
        kind = each.get("type") or ""
        if kind not in _RESULTS:
            yield not_supported(f"{at}.type", kind, _RESULTS)
            continue
        results += 1
        if results > 1:
            detail = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            yield invalid(f"{at}.type", kind, detail)
        if each.get("status") != "True":
            yield not_supported(f"{at}.status", each.get("status") or "", ("True",))
    before = {each.get("type") for each in get(old, "conditions", ())}
    if before.intersection(_RESULTS):
        if status != old:
            detail = "immutable after PodCertificateRequest is issued, denied, or failed"
            yield invalid("status", Token(""), detail)
    elif not conditions and status != old:
        detail = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
        yield invalid("status", Token(""), detail)
