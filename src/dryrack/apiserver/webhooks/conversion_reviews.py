"""
ConversionReviews: how a custom object gets from one version of its kind to another.

A definition with `strategy: Webhook` names a webhook that converts objects. Strategies convert in
the middle of a request and do not wait, so a conversion whose answer is missing ends the attempt
with `ReviewNeededError`, as an admission webhook does; the server calls the webhook and starts the
request again. The answers of the request under way are in a context variable, because a strategy
that reads or stores an object does not see the request.

The texts of refused answers are those of kube-apiserver.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dryrack.apiserver.answer.status import Status, StatusError, internal_error
from dryrack.apiserver.webhooks.admission_reviews import (
    ADDRESS,
    ReviewNeededError,
    Unanswered,
    endpoint_of,
)
from dryrack.base.limits import CONVERSION_REVIEW_BYTES_MAX, REVIEWS_AT_ONCE_MAX, REVIEWS_MAX
from dryrack.kinds.paths import get
from dryrack.kinds.text.go_json import type_name
from dryrack.kinds.validation import meta as metadata_rules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from dryrack.apiserver.extension_points import WebhookCaller
    from dryrack.apiserver.strategy import Lookup
    from dryrack.apiserver.webhooks.admission_reviews import Reviews
    from dryrack.kinds.raw import Raw

R = TypeVar("R")

GROUP = "apiextensions.k8s.io"
VERSIONS = ("v1", "v1beta1")
# As long as kube-apiserver waits for a conversion webhook; definitions cannot set it.
TIMEOUT_SECONDS = 30
_CALL_FAILED = "failed to call webhook: "
# What a webhook may change in the metadata, and what identifies an object.
_CHANGEABLE = ("labels", "annotations")
_IDENTITY = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))

_reviews: ContextVar[Reviews | None] = ContextVar("conversion_reviews", default=None)


@contextmanager
def using_answers(reviews: Reviews | None) -> Iterator[None]:
    """Let conversions in this context use the answers of a request."""
    token = _reviews.set(reviews)
    try:
        yield
    finally:
        _reviews.reset(token)


async def answer_with_reviews(
    attempt: Callable[[], Awaitable[R]], webhooks: WebhookCaller, reviews: Reviews
) -> R:
    """Make an attempt, call the webhooks that it needs, and make it again until it has all."""
    for _ in range(REVIEWS_MAX):
        try:
            with using_answers(reviews):
                return await attempt()
        except ReviewNeededError as error:
            questions = error.questions
        async with asyncio.TaskGroup() as group:
            tasks = [
                (each, group.create_task(webhooks.ask(each), name=f"ask {each.url}"))
                for each in questions
            ]
        for question, task in tasks:
            question.note(task.result(), reviews)
    raise internal_error("webhooks were called too often about one request")


def without_answers() -> bool:
    """Return whether the server itself reads or writes, and no request can wait for a webhook."""
    return _reviews.get() is None


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """One call of a conversion webhook, for objects of one kind and version."""

    url: str
    server_name: str
    authority: bytes
    version: str
    """Of the ConversionReview: v1 or v1beta1."""
    desired: str
    """The apiVersion to convert to."""
    objects: tuple[Raw, ...]
    timeout_seconds: int = TIMEOUT_SECONDS

    @property
    def identity(self) -> bytes:
        return b"".join((self.url.encode(), *(_key(each, self.desired) for each in self.objects)))

    def body(self, uid: str) -> bytes:
        request = {"uid": uid, "desiredAPIVersion": self.desired, "objects": self.objects}
        review = {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{self.version}"}
        return msgspec.json.encode({**review, "request": request})

    def read(self, uid: str, body: bytes) -> list[Raw] | Unanswered:
        try:
            review: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Unanswered(f"failed: {error}")
        if not isinstance(review, dict):
            name = type_name(review)
            return Unanswered(f"failed: the response is JSON of type {name}, not an object")
        if problem := self._problem(uid, review):
            return Unanswered(f"failed: {problem}")
        converted = get(review["response"], "convertedObjects", [])
        if len(converted) != len(self.objects):
            return Unanswered(f"returned {len(converted)} objects, expected {len(self.objects)}")
        try:
            pairs = enumerate(zip(self.objects, converted, strict=True))
            return [self._accept_answer(index, *pair) for index, pair in pairs]
        except _InvalidObjectError as error:
            return Unanswered(str(error))

    def note(self, answer: list[Raw] | Unanswered, reviews: Reviews) -> None:
        if isinstance(answer, Unanswered):
            # A call that did not get through says so first, as admission webhooks need it.
            told = answer.reason
            if told.startswith(_CALL_FAILED):
                told = f"failed: {told.removeprefix(_CALL_FAILED)}"
            failure = failure_of(self.objects[0], told)
            reviews.converted |= {_key(each, self.desired): failure for each in self.objects}
        else:
            keys = (_key(each, self.desired) for each in self.objects)
            reviews.converted |= dict(zip(keys, answer, strict=True))

    def _problem(self, uid: str, review: Raw) -> str:
        """Return what is wrong with the response as a whole, in the order of kube-apiserver."""
        response = review.get("response")
        is_strict = self.version == "v1"
        group, _, version = str(review.get("apiVersion") or "").rpartition("/")
        kind = review.get("kind") or ""
        if is_strict and (group, version, kind) != (GROUP, "v1", "ConversionReview"):
            expected = f"{GROUP}/v1, Kind=ConversionReview"
            return f"expected webhook response of {expected}, got {group}/{version}, Kind={kind}"
        if not isinstance(response, dict):
            return "no response provided"
        if is_strict and response.get("uid") != uid:
            return f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
        found = response.get("result")
        result = found if isinstance(found, dict) else {}
        if result.get("status") != "Success":
            told = f"response.result.status was '{result.get('status') or ''}', not 'Success'"
            return str(result.get("message") or told)
        if not isinstance(get(response, "convertedObjects", []), list):
            return "response.convertedObjects is not a list"
        return ""

    def _accept_answer(self, index: int, source: Raw, converted: Any) -> Raw:
        """Return a converted object whose metadata holds only what the webhook may change."""
        is_one = len(self.objects) == 1
        at = "object at index 0" if is_one else f"converted object at index {index}"
        if not isinstance(converted, dict):
            raise _InvalidObjectError(f"returned invalid {at}: not an object")
        received = converted.get("apiVersion") or ""
        if received != self.desired:
            told = f"invalid groupVersion (expected {self.desired}, received {received})"
            raise _InvalidObjectError(f"returned invalid {at}: {told}")
        kind = converted.get("kind") or ""
        expected = source["kind"]
        if kind != expected:
            told = f"invalid kind (expected {expected}, received {kind})"
            raise _InvalidObjectError(f"returned invalid {at}: {told}")
        given = converted.get("metadata")
        meta = given if isinstance(given, dict) else {}
        for key, name in _IDENTITY:
            before = source["metadata"].get(key) or ""
            after = meta.get(key) or ""
            if before != after:
                where = "object" if is_one else at
                told = f"must have the same {name}: {before} != {after}"
                raise _InvalidObjectError(f"returned invalid {where}: {told}")
        if problem := _metadata_problem(converted, source["metadata"]):
            where = "" if is_one else f" in object at index {index}"
            raise _InvalidObjectError(f"returned invalid metadata{where}: {problem}")
        kept = {key: meta[key] for key in _CHANGEABLE if meta.get(key) is not None}
        return {**converted, "metadata": kept}


class _InvalidObjectError(Exception):
    """An object in an answer is not the conversion of what was sent."""


def _metadata_problem(converted: Raw, before: Raw) -> str:
    if "metadata" not in converted:
        return "missing metadata in converted object"
    given = converted["metadata"]
    if not isinstance(given, dict):
        return f"invalid metadata of type {type_name(given)} in converted object"
    for name, check in (
        ("labels", metadata_rules.labels),
        ("annotations", metadata_rules.annotations),
    ):
        values = given.get(name)
        if values is None:
            continue
        if not isinstance(values, dict):
            return f"invalid metadata.{name} of type {type_name(values)} in converted object"
        for key, value in values.items():
            if not isinstance(value, str):
                found = f"{type_name(value)} in converted object"
                return f"metadata.{name}[{key}] must be a string, but is {found}"
        if values != (before.get(name) or {}):
            field = "metadata.labels" if name == "labels" else "metadata.annotation"
            problems = [str(each) for each in check(field, values)]
            if problems:
                return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return ""


def failure_of(obj: Raw, told: str) -> str:
    """Return the message about a failed conversion of an object."""
    return f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']} {told}"


def _key(obj: Raw, desired: str) -> bytes:
    """
    Identify an object and the version that it is converted to.

    Of the metadata only what a webhook may look at or change counts: a request that starts again
    in the next second has new times, and an object that was just written has a new revision.
    """
    meta = obj["metadata"]
    names = ("name", "generateName", "namespace", "uid", *_CHANGEABLE)
    counted = {name: meta[name] for name in names if meta.get(name)}
    return msgspec.json.encode((desired, {**obj, "metadata": counted}), order="deterministic")


@dataclass(frozen=True, slots=True)
class Converter:
    """The conversion webhook of a definition."""

    webhook: Raw
    """spec.conversion.webhook"""
    lookup: Lookup

    def is_reachable(self) -> bool:
        """Return whether the webhook has a URL, or its Service an address."""
        return endpoint_of(self.webhook["clientConfig"], self.lookup) is not None

    def unreachable(self, obj: Raw) -> str:
        """Return why an object cannot be converted, and how that can be changed."""
        service = get(self.webhook["clientConfig"], "service", {})
        name = service.get("name") or ""
        namespace = service.get("namespace") or ""
        path = str(service.get("path") or "").lstrip("/")
        port = service.get("port") or 443
        url = f"https://{name}.{namespace}.svc:{port}/{path}?timeout={TIMEOUT_SECONDS}s"
        if self.lookup.get("services", namespace, name) is None:
            told = f'service "{name}" not found'
        else:
            told = f'no endpoints available for service "{name}"'
        remedy = f"run the webhook and annotate the Service {namespace}/{name} with"
        return failure_of(obj, f'failed: Post "{url}": {told}; {remedy} {ADDRESS}=HOST:PORT')

    def convert(self, objects: Sequence[Raw], desired: str) -> list[Raw]:
        """
        Return objects as the webhook converts them.

        Raises `ReviewNeededError` if the request has no answer for some of them yet, and a
        `StatusError` if the webhook failed.
        """
        reviews = _reviews.get()
        assert reviews is not None, "only a request can wait for a webhook"
        found = [reviews.converted.get(_key(each, desired)) for each in objects]
        missing = [each for each, known in zip(objects, found, strict=True) if known is None]
        if missing:
            questions = self._questions(missing, desired)
            raise ReviewNeededError(*islice(questions, REVIEWS_AT_ONCE_MAX))
        converted = []
        for source, made in zip(objects, found, strict=True):
            assert made is not None, "none is missing"
            if isinstance(made, str):
                raise StatusError(Status(500, "", made))
            kept = {k: v for k, v in source["metadata"].items() if k not in _CHANGEABLE}
            converted.append({**made, "metadata": {**kept, **made["metadata"]}})
        return converted

    def _questions(self, objects: Sequence[Raw], desired: str) -> Iterator[ConversionRequest]:
        """Yield one review for each source version, or several for very much to convert."""
        versions = get(self.webhook, "conversionReviewVersions", ())
        version = next((each for each in versions if each in VERSIONS), None)
        if version is None:
            raise StatusError(Status(500, "", "no supported conversion review versions"))
        endpoint = endpoint_of(self.webhook["clientConfig"], self.lookup)
        assert endpoint is not None, "callers ask whether it is reachable"
        authority = base64.b64decode(self.webhook["clientConfig"].get("caBundle") or "")
        for batch in _batches(objects):
            yield ConversionRequest(*endpoint, authority, version, desired, batch)


def _batches(objects: Sequence[Raw]) -> Iterator[tuple[Raw, ...]]:
    batch: list[Raw] = []
    size = 0
    for each in objects:
        length = len(msgspec.json.encode(each))
        is_other = bool(batch) and batch[0]["apiVersion"] != each["apiVersion"]
        if batch and (is_other or size + length > CONVERSION_REVIEW_BYTES_MAX):
            yield tuple(batch)
            batch = []
            size = 0
        batch.append(each)
        size += length
    if batch:
        yield tuple(batch)
