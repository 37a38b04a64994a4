"""
AdmissionReviews: what a webhook is asked, and how its answer is read.

Nothing waits between the look at what is stored and the write, and a webhook is far away. So a
write that needs an answer is given up with `ReviewNeededError` before it has changed anything, the
webhook is asked, and the write begins again with the answer in its `Reviews`. What a request makes
up (identifiers, names) is the same each time, so that it asks the same.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Lookup
    from dryrack.base.ports import Chance
    from dryrack.kinds.raw import Raw

_GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")
# On a Service: the host and port where the program that it stands for listens.
ADDRESS = "dryrack.dev/address"


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """One call of a webhook: where it is, and an AdmissionRequest that has no uid yet."""

    url: str
    server_name: str
    """Whose certificate the webhook shows; "": that of the host of the URL."""
    authority: bytes
    """Certificates in PEM; empty: those of the machine."""
    timeout_seconds: int
    version: str
    request: Raw
    mutates: bool

    @property
    def identity(self) -> bytes:
        """The same for a request that is made again, even in the next second."""
        asked = self.request.get("object")
        if asked is not None:
            meta = {**(asked.get("metadata") or {}), "creationTimestamp": None}
            asked = {**asked, "metadata": meta}
        return msgspec.json.encode((self.url, self.mutates, {**self.request, "object": asked}))


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """What a webhook has answered."""

    is_allowed: bool
    patch: bytes = b""
    status: Raw = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a webhook has no say: the rest of a sentence about the call."""

    reason: str


WebhookAnswer = ReviewResponse | Unanswered


def endpoint_of(config: Raw, lookup: Lookup) -> tuple[str, str] | None:
    """The URL of a clientConfig, and whose certificate is shown there; None if nobody is."""
    if config.get("url"):
        return config["url"], ""
    named = config.get("service") or {}
    namespace, name = named.get("namespace") or "", named.get("name") or ""
    service = lookup.get("services", namespace, name)
    address = (service or {}).get("metadata", {}).get("annotations", {}).get(ADDRESS)
    if not address:
        return None
    path = str(named.get("path") or "").lstrip("/")
    return f"https://{address}/{path}", f"{name}.{namespace}.svc"


class ReviewNeededError(Exception):
    """A write cannot go on before webhooks have been asked."""

    def __init__(self, *questions: ReviewRequest) -> None:
        super().__init__(*(each.url for each in questions))
        self.questions = questions


@dataclass(slots=True)
class Reviews:
    """The answers that one request has so far, and what it has made up."""

    answers: dict[bytes, WebhookAnswer] = field(default_factory=dict)
    identifiers: list[str] = field(default_factory=list)

    def answer(self, question: ReviewRequest) -> WebhookAnswer:
        found = self.answers.get(question.identity)
        if found is None:
            raise ReviewNeededError(question)
        return found


class RepeatableChance:
    """Gives a request that begins again what it was given before."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._given: list[str] | None = None
        self._next = 0

    def begin(self, given: list[str] | None) -> None:
        """From now on for a request that was given these before; None: for one that was not."""
        self._given, self._next = given, 0

    def uuid(self) -> str:
        if self._given is None:
            return self._chance.uuid()
        if self._next == len(self._given):
            self._given.append(self._chance.uuid())
        self._next += 1
        return self._given[self._next - 1]


def review_body(question: ReviewRequest, uid: str) -> bytes:
    """The AdmissionReview to post."""
    request = {"uid": uid, **question.request}
    review = {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{question.version}"}
    return msgspec.json.encode({**review, "request": request})


def read_answer(question: ReviewRequest, uid: str, body: bytes) -> WebhookAnswer:
    """The answer, if it is one to this question."""
    try:
        review: Any = msgspec.json.decode(body)
        response = review["response"] or {}
        patch = base64.b64decode(response.get("patch") or "", validate=True)
    except (msgspec.DecodeError, binascii.Error, AttributeError, KeyError, TypeError):
        return Unanswered("received invalid webhook response: webhook response was absent")
    if question.version == "v1":
        problem = _problem(question, review, uid)
        if problem:
            return Unanswered(f"received invalid webhook response: {problem}")
    return ReviewResponse(
        is_allowed=response.get("allowed") is True,
        patch=patch if question.mutates else b"",
        status=response.get("status") or {},
        warnings=tuple(response.get("warnings") or ()),
    )


def _problem(question: ReviewRequest, review: Raw, uid: str) -> str:
    """What v1 asks of an answer, in the order and the words of the real server."""
    response = review["response"]
    if response.get("uid") != uid:
        return f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
    group, _, version = str(review.get("apiVersion") or "").rpartition("/")
    if (group, version, review.get("kind")) != (_GROUP, "v1", "AdmissionReview"):
        told = f"{group}/{version}, Kind={review.get('kind') or ''}"
        return f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {told}"
    has_patch, has_type = bool(response.get("patch")), response.get("patchType") is not None
    if not question.mutates:
        wrong = "patch" if has_patch else "patchType" if has_type else ""
        return f"validating webhook may not return response.{wrong}" if wrong else ""
    if has_patch and not has_type:
        return "webhook returned response.patch but not response.patchType"
    if has_type and not has_patch:
        return "webhook returned response.patchType but not response.patch"
    if has_type and response["patchType"] != "JSONPatch":
        return f'unsupported patch type "{response["patchType"]}"'
    return ""
