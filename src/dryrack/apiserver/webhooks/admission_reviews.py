"""
AdmissionReviews: the request to a webhook, and its answer.

A write does not wait between reading the store and writing, and a webhook takes time. So a write
that needs an answer stops with `ReviewNeededError` before it has changed anything, the webhook is
called, and the write starts again with the answer in its `Reviews`. Identifiers and names that a
request generates are the same each time, so that the review is the same.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from dryrack.kinds.paths import get, metadata_of

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Lookup
    from dryrack.base.ports import Chance
    from dryrack.kinds.raw import Raw

_GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")
# On a Service: the host and port where the program that it stands for listens.
ADDRESS = "dryrack.dev/address"

T = TypeVar("T")


class WebhookRequest(Protocol[T]):
    """One call of a webhook; `T` is what a webhook of this sort answers."""

    @property
    def url(self) -> str: ...

    @property
    def server_name(self) -> str:
        """The name in the webhook's certificate; "": the host of the URL."""
        ...

    @property
    def authority(self) -> bytes:
        """Certificates in PEM; empty: those of the machine."""
        ...

    @property
    def timeout_seconds(self) -> int: ...

    @property
    def identity(self) -> bytes:
        """Return a key that is equal when the request is repeated, even in the next second."""
        ...

    def body(self, uid: str) -> bytes:
        """Return the review to post."""
        ...

    def read(self, uid: str, body: bytes) -> T | Unanswered:
        """Return the answer in a response body if it answers this review."""
        ...

    def note(self, answer: T | Unanswered, reviews: Reviews) -> None:
        """Add the answer to those that the API request has so far."""
        ...


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
        """Return a key that is equal when the request is repeated, even in the next second."""
        asked = self.request.get("object")
        if asked is not None:
            meta = {**metadata_of(asked), "creationTimestamp": None}
            asked = {**asked, "metadata": meta}
        return msgspec.json.encode((self.url, self.mutates, {**self.request, "object": asked}))

    def body(self, uid: str) -> bytes:
        return review_body(self, uid)

    def read(self, uid: str, body: bytes) -> WebhookAnswer:
        return read_answer(self, uid, body)

    def note(self, answer: WebhookAnswer, reviews: Reviews) -> None:
        reviews.answers[self.identity] = answer


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The answer of a webhook."""

    is_allowed: bool
    patch: bytes = b""
    status: Raw = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The failure of a call: the rest of a sentence about the webhook."""

    reason: str


WebhookAnswer = ReviewResponse | Unanswered


def endpoint_of(config: Raw, lookup: Lookup) -> tuple[str, str] | None:
    """Return the URL of a clientConfig and the name in its certificate, or None."""
    if config.get("url"):
        url = urlsplit(config["url"])
        return url._replace(path=_clean_path(url.path)).geturl(), ""
    named = get(config, "service", {})
    namespace = named.get("namespace") or ""
    name = named.get("name") or ""
    service = lookup.get("services", namespace, name)
    address = (service or {}).get("metadata", {}).get("annotations", {}).get(ADDRESS)
    if not address:
        return None
    path = _clean_path(str(named.get("path") or ""))
    return f"https://{address}{path}", f"{name}.{namespace}.svc"


def _clean_path(path: str) -> str:
    """Return a path as Kubernetes requests it: `//mutate/` as `/mutate`."""
    return normpath("/" + path.lstrip("/"))


class ReviewNeededError(Exception):
    """A request cannot go on before the server has called webhooks."""

    def __init__(self, *questions: WebhookRequest[Any]) -> None:
        super().__init__(*(each.url for each in questions))
        self.questions = questions


@dataclass(slots=True)
class Reviews:
    """The answers that one request has so far, and what it has made up."""

    answers: dict[bytes, WebhookAnswer] = field(default_factory=dict)
    converted: dict[bytes, Raw | str] = field(default_factory=dict)
    """By source object and version: the converted object, or why the conversion failed."""
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
        self._text_at: list[str] | None = None
        self._next = 0

    def begin(self, given: list[str] | None) -> None:
        """From now on for a request that was given these before; None: for one that was not."""
        self._text_at = given
        self._next = 0

    def uuid(self) -> str:
        if self._text_at is None:
            return self._chance.uuid()
        if self._next == len(self._text_at):
            self._text_at.append(self._chance.uuid())
        self._next += 1
        return self._text_at[self._next - 1]


def review_body(question: ReviewRequest, uid: str) -> bytes:
    """The AdmissionReview to post."""
    request = {"uid": uid, **question.request}
    review = {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{question.version}"}
    return msgspec.json.encode({**review, "request": request})


def read_answer(question: ReviewRequest, uid: str, body: bytes) -> WebhookAnswer:
    """Return the answer in a body, or why the body answers nothing."""
    try:
        review = msgspec.json.decode(body, type=_Review)
        response = review.response
        patch = base64.b64decode((response and response.patch) or "", validate=True)
    except msgspec.ValidationError as error:
        return Unanswered(f"received invalid webhook response: {error}")
    except (ValueError, RecursionError):
        response = None
    if response is None:
        return Unanswered("received invalid webhook response: webhook response was absent")
    if question.version == "v1":
        problem = _problem(question, review, response, uid)
        if problem:
            return Unanswered(f"received invalid webhook response: {problem}")
    return ReviewResponse(
        is_allowed=bool(response.allowed),
        patch=patch if question.mutates else b"",
        status=_text_at(response.status) if response.status else {},
        warnings=tuple(response.warnings or ()),
    )


class _Denial(msgspec.Struct):
    code: int | None = None
    message: str | None = None
    reason: str | None = None
    details: dict[str, Any] | None = None


class _Response(msgspec.Struct, rename="camel"):
    uid: str | None = None
    allowed: bool | None = None
    status: _Denial | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    """An AdmissionReview, with the types that Kubernetes gives to its fields."""

    api_version: str | None = None
    kind: str | None = None
    response: _Response | None = None


def _text_at(denial: _Denial) -> Raw:
    return {key: value for key, value in msgspec.structs.asdict(denial).items() if value}


def _problem(question: ReviewRequest, review: _Review, response: _Response, uid: str) -> str:
    """Return what v1 finds wrong with an answer, in the order and words of the real server."""
    if response.uid != uid:
        return f'expected response.uid="{uid}", got "{response.uid or ""}"'
    group, _, version = (review.api_version or "").rpartition("/")
    if (group, version, review.kind) != (_GROUP, "v1", "AdmissionReview"):
        given = f"{group}/{version}, Kind={review.kind or ''}"
        return f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {given}"
    has_patch = bool(response.patch)
    has_type = response.patch_type is not None
    if not question.mutates:
        wrong = "patch" if has_patch else "patchType" if has_type else ""
        return f"validating webhook may not return response.{wrong}" if wrong else ""
    if has_patch and not has_type:
        return "webhook returned response.patch but not response.patchType"
    if has_type and not has_patch:
        return "webhook returned response.patchType but not response.patch"
    if has_type and response.patch_type != "JSONPatch":
        return f'unsupported patch type "{response.patch_type}"'
    return ""
