"""
Deletions: at once, when the grace is over, or when the last finalizer is gone.

An object that nothing holds is removed at once. Otherwise it is marked, and its holder removes its
finalizer (or, after a grace period, confirms the deletion) in an update or another delete.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dryrack.apiserver.answer.status import (
    StatusError,
    Subject,
    Success,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from dryrack.apiserver.decode import bodies
from dryrack.apiserver.extension_points import ExtensionPoints
from dryrack.apiserver.http import media
from dryrack.apiserver.http.queries import Query, dry_run_problems, integer_of, text_of, truth_of
from dryrack.apiserver.metadata import timestamp
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategy import Write
from dryrack.apiserver.verbs.writing import Order, Writer
from dryrack.apiserver.webhooks.admission_reviews import ReviewNeededError, WebhookRequest
from dryrack.base.limits import REVIEWS_AT_ONCE_MAX
from dryrack.base.ports import Clock
from dryrack.client.timekeeping import seconds_of
from dryrack.client.transport import Request
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.text.go_json import GoSyntaxError, YamlError, type_name
from dryrack.kinds.validation import FieldProblem
from dryrack.kinds.validation.problems import invalid as invalid_value
from dryrack.kinds.validation.problems import not_supported
from dryrack.store import Store, Stored

PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public")
_SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")
_OPTIONS = Subject("meta.k8s.io", "DeleteOptions")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete, from the body or, without a body, from the query."""

    grace_seconds: int | None = None
    uid: str | None = None
    revision: str | None = None
    orphans: bool | None = None
    policy: str | None = None
    dry_run: bool = False


_DEFAULT = DeleteOptions()


def read_options(request: Request, query: Query) -> DeleteOptions:
    if not request.body and not query:
        return _DEFAULT
    if request.body:
        given = _read_body(request)
    else:
        given = {"gracePeriodSeconds": integer_of(query, "gracePeriodSeconds")}
        if "orphanDependents" in query:
            given["orphanDependents"] = truth_of(query, "orphanDependents")
        if "propagationPolicy" in query:
            given["propagationPolicy"] = text_of(query, "propagationPolicy")
        given["dryRun"] = list(query.get("dryRun", []))
    problems = tuple(_problems(given))
    if problems:
        raise invalid(_OPTIONS, "", problems)
    preconditions = get(given, "preconditions", {})
    grace = given.get("gracePeriodSeconds")
    return DeleteOptions(
        # A negative period is the shortest one.
        grace_seconds=1 if grace is not None and grace < 0 else grace,
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
        orphans=given.get("orphanDependents"),
        policy=given.get("propagationPolicy"),
        dry_run=bool(given.get("dryRun")),
    )


def _read_body(request: Request) -> Raw:
    body = bodies.body_of(request)
    is_yaml = media.body_type(request.headers) == media.YAML
    try:
        given = bodies.read_yaml(body)[0] if is_yaml else bodies.read_json(body)
    except YamlError as error:
        raise bad_request(str(error)) from None
    except GoSyntaxError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    problem = bodies.type_meta_problem(given) if isinstance(given, dict) else ""
    if problem or not isinstance(given, dict):
        raise bad_request(problem or bodies.not_an_object(given))
    kind = given.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        raise bad_request(bodies.not_registered(str(kind), str(given.get("apiVersion") or "")))
    for name, (expected, shown) in _TYPES.items():
        _check_type(given.get(name), f"DeleteOptions.{name}", expected, shown)
    preconditions = get(given, "preconditions", {})
    for name, shown in (("uid", "types.UID"), ("resourceVersion", "string")):
        _check_type(preconditions.get(name), f"Preconditions.preconditions.{name}", str, shown)
    return given


_TYPES: Mapping[str, tuple[type, str]] = {
    "gracePeriodSeconds": (int, "int64"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
    "preconditions": (dict, "v1.Preconditions"),
}


def _check_type(value: Any, field: str, expected: type, shown: str) -> None:
    is_right = type(value) is expected
    if value is not None and not is_right:
        raise bad_request(
            f"json: cannot unmarshal {type_name(value)} into Go struct field {field} "
            f"of type {shown}"
        )


def _problems(given: Raw) -> Iterator[FieldProblem]:
    policy = given.get("propagationPolicy")
    if policy is not None and given.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid_value("propagationPolicy", policy, detail)
    if policy is not None and policy not in _POLICIES:
        yield not_supported("propagationPolicy", policy, (*_POLICIES, "nil"))
    yield from dry_run_problems(get(given, "dryRun", []))


@dataclass(frozen=True, slots=True)
class Deleted:
    """The answer to a delete: the object that remains or was removed, or a success."""

    object: Raw | None
    success: Success
    stored: Stored | None = None
    is_pending: bool = False


class Deleter:
    """Deletes from a store."""

    def __init__(
        self, store: Store, writer: Writer, extensions: ExtensionPoints, clock: Clock
    ) -> None:
        self._store = store
        self._writer = writer
        self._extensions = extensions
        self._clock = clock

    def delete(self, order: Order, options: DeleteOptions) -> Deleted:
        """Remove an object, or mark it for those that hold it."""
        resource = order.resource
        strategy = resource.strategy
        _check_not_permanent(resource, order.name)
        stored = self._store.get(order.key)
        if stored is None:
            raise not_found(resource.as_resource, order.name)
        _check_preconditions(resource, stored, options)
        write = msgspec.structs.replace(self._writer.context(order), dry_run=options.dry_run)
        old = resource.read_metadata(stored)
        self._approve(order, old, write)
        marked = self._with_grace(resource, old, options)
        has_grace = marked is not old
        meta = old["metadata"]
        is_waiting = "deletionTimestamp" in meta and bool(meta.get("deletionGracePeriodSeconds"))
        if has_grace or not is_waiting:
            finalizers = _finalizers_after(resource, old, options)
            marked = _with_finalizers(marked, finalizers)
            if not finalizers and not has_grace and not strategy.is_held(marked):
                return self._remove(resource, stored, options)
            if not has_grace:
                marked = _with_deletion_time(marked, write.now, has_finalizers=bool(finalizers))
            marked = strategy.prepare_delete(marked, write)
        pending = self._store_marked(resource, stored, marked, options)
        meta = marked["metadata"]
        is_over = not meta.get("finalizers") and meta.get("deletionGracePeriodSeconds") == 0
        if is_over and not strategy.is_held(marked):
            return self._remove(resource, pending.stored or stored, options, marked)
        return pending

    def _approve(self, order: Order, old: Raw, write: Write) -> None:
        """Raise if the object may not be deleted; an eviction has a check of its own."""
        if self._extensions.deletion is not None and not order.subresource:
            self._extensions.deletion(order.resource, old, write)

    def _with_grace(self, resource: Resource, obj: Raw, options: DeleteOptions) -> Raw:
        """Return the object with the end of its grace period; the same one if it has none."""
        meta = obj["metadata"]
        seconds = options.grace_seconds
        if "deletionTimestamp" not in meta:
            grace = resource.strategy.grace_seconds(obj, seconds)
            if grace is None:
                return obj
            at = timestamp(self._clock.now() + grace)
            new = {**meta, "deletionTimestamp": at, "deletionGracePeriodSeconds": grace}
            return {**obj, "metadata": _next_generation(new)}
        # A second delete may only make the period shorter.
        stored_grace = meta.get("deletionGracePeriodSeconds")
        if not stored_grace or seconds is None or seconds >= stored_grace:
            return obj
        now = self._clock.now()
        end = seconds_of(meta["deletionTimestamp"]) - stored_grace + seconds
        if end < now:
            # The period is over, but the kubelet still has to end the object.
            end = now
            seconds = 1 if seconds else 0
        times = {"deletionTimestamp": timestamp(end), "deletionGracePeriodSeconds": seconds}
        return {**obj, "metadata": {**meta, **times}}

    def _store_marked(
        self, resource: Resource, stored: Stored, marked: Raw, options: DeleteOptions
    ) -> Deleted:
        if resource.strategy.converts:
            # A deletion changes only metadata, and needs no conversion back.
            document = _with_metadata_of(stored.object, marked)
        else:
            document = resource.strategy.to_storage(marked)
        if options.dry_run or document == stored.object:
            return Deleted(marked, Success(), is_pending=True)
        written = self._store.put(stored.key, document, expected=stored.revision)
        assert isinstance(written, Stored), "no other write happens in between"
        return Deleted(written.object, Success(), written, is_pending=True)

    def _remove(
        self,
        resource: Resource,
        stored: Stored,
        options: DeleteOptions,
        marked: Raw | None = None,
    ) -> Deleted:
        uid = stored.object["metadata"].get("uid", "")
        success = Success(resource.as_resource.details(stored.key.name, uid=uid))
        if not options.dry_run:
            removed = self._store.delete(stored.key, expected=stored.revision)
            assert isinstance(removed, Stored), "no other write happens in between"
            stored = removed
        if not resource.deletion_shows_object:
            return Deleted(None, success, stored)
        if options.dry_run and marked is not None:
            return Deleted(marked, success)
        return Deleted(stored.object, success, stored)

    def delete_all(
        self, order: Order, options: DeleteOptions, items: tuple[Stored, ...]
    ) -> list[Stored]:
        """Delete each object, unless it is gone meanwhile; return what they were."""
        if order.reviews is not None:
            self._request_reviews(order, options, items)
        for each in items:
            one = msgspec.structs.replace(order, namespace=each.key.namespace, name=each.key.name)
            try:
                self.delete(one, options)
            except StatusError as error:
                if error.status.code != _NOT_FOUND:
                    raise
        return list(items)

    def _request_reviews(
        self, order: Order, options: DeleteOptions, items: tuple[Stored, ...]
    ) -> None:
        """Raise a `ReviewNeededError` about all objects before the first is deleted."""
        needed: list[WebhookRequest[Any]] = []
        for each in items:
            one = msgspec.structs.replace(order, namespace=each.key.namespace, name=each.key.name)
            write = msgspec.structs.replace(self._writer.context(one), dry_run=options.dry_run)
            try:
                self._approve(one, order.resource.read_metadata(each), write)
            except ReviewNeededError as error:
                needed += error.questions
            except StatusError:
                # `delete` raises it when this object is next.
                continue
            if len(needed) >= REVIEWS_AT_ONCE_MAX:
                break
        if needed:
            raise ReviewNeededError(*needed)


def _check_not_permanent(resource: Resource, name: str) -> None:
    """Raise for the namespaces and priority classes on which the system depends."""
    if resource.storage == "namespaces" and name in PERMANENT_NAMESPACES:
        raise forbidden(resource.as_resource, name, "this namespace may not be deleted")
    if resource.storage == "priorityclasses.scheduling.k8s.io" and name in _SYSTEM_PRIORITIES:
        detail = "this is a system priority class and cannot be deleted"
        raise forbidden(resource.as_resource, name, detail)


def _with_metadata_of(stored: Raw, marked: Raw) -> Raw:
    """Return a stored object with the metadata of another version, whose labels may differ."""
    own = {key: stored["metadata"].get(key) for key in ("labels", "annotations")}
    meta = {key: value for key, value in marked["metadata"].items() if key not in own}
    return {**stored, "metadata": meta | {key: value for key, value in own.items() if value}}


_NOT_FOUND = 404


def _check_preconditions(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    meta = stored.object["metadata"]
    uid = meta.get("uid", "")
    revision = str(stored.revision)
    if options.uid is not None and options.uid != uid:
        detail = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({uid}). The object might have been deleted and then recreated"
        )
        raise conflict(resource.as_kind, stored.key.name, detail)
    if options.revision is not None and options.revision != revision:
        detail = (
            f"the ResourceVersion in the precondition ({options.revision}) does not match the "
            f"ResourceVersion in record ({revision}). The object might have been modified"
        )
        raise conflict(resource.as_kind, stored.key.name, detail)


def _finalizers_after(resource: Resource, obj: Raw, options: DeleteOptions) -> list[str]:
    """
    Return the finalizers of a deleted object: its own, and that of the garbage collector.

    The request decides about the latter; then the finalizers of the object; then its kind.
    """
    old = get(obj["metadata"], "finalizers", [])
    policy = "Background"
    if options.orphans is not None:
        policy = "Orphan" if options.orphans else "Background"
    elif options.policy is not None:
        policy = options.policy
    elif ORPHAN in old:
        policy = "Orphan"
    elif FOREGROUND in old:
        policy = "Foreground"
    elif resource.strategy.orphans_by_default:
        policy = "Orphan"
    new = [each for each in old if each not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        new.append(ORPHAN)
    elif policy == "Foreground":
        new.append(FOREGROUND)
    return old if set(old) == set(new) else new


def _with_finalizers(obj: Raw, finalizers: list[str]) -> Raw:
    meta = obj["metadata"]
    if get(meta, "finalizers", []) == finalizers:
        return obj
    new = {key: value for key, value in meta.items() if key != "finalizers"}
    if finalizers:
        new["finalizers"] = finalizers
    return {**obj, "metadata": new}


def _with_deletion_time(obj: Raw, now: str, *, has_finalizers: bool) -> Raw:
    meta = dict(obj["metadata"])
    if "deletionTimestamp" not in meta:
        meta = _next_generation({**meta, "deletionTimestamp": now})
    # An object that its kind alone holds, such as a namespace, has no grace period.
    if has_finalizers:
        meta["deletionGracePeriodSeconds"] = 0
    return {**obj, "metadata": meta}


def _next_generation(meta: Raw) -> Raw:
    generation = meta.get("generation")
    return {**meta, "generation": generation + 1} if generation else meta
