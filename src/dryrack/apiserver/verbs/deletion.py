"""
Deletions: at once, when the grace is over, or when the last finalizer is gone.

An object goes at once if nothing holds it. Otherwise it is marked, and whoever holds it takes its
finalizer away (or, after a grace, confirms the deletion) in an update or another delete.
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
    """How to delete; from the body, or if there is none from the query."""

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
    given = _from_body(request) if request.body else _from_query(query)
    problems = tuple(_problems(given))
    if problems:
        raise invalid(_OPTIONS, "", problems)
    preconditions = get(given, "preconditions", {})
    grace = given.get("gracePeriodSeconds")
    return DeleteOptions(
        # Less than nothing is as little as there is.
        grace_seconds=1 if grace is not None and grace < 0 else grace,
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
        orphans=given.get("orphanDependents"),
        policy=given.get("propagationPolicy"),
        dry_run=bool(given.get("dryRun")),
    )


def _from_body(request: Request) -> Raw:
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
    _check_types(given)
    return given


_TYPES: Mapping[str, tuple[type, str]] = {
    "gracePeriodSeconds": (int, "int64"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
    "preconditions": (dict, "v1.Preconditions"),
}


def _check_types(given: Raw) -> None:
    for name, (expected, shown) in _TYPES.items():
        _check_type(given.get(name), f"DeleteOptions.{name}", expected, shown)
    preconditions = get(given, "preconditions", {})
    for name, shown in (("uid", "types.UID"), ("resourceVersion", "string")):
        _check_type(preconditions.get(name), f"Preconditions.preconditions.{name}", str, shown)


def _check_type(value: Any, field: str, expected: type, shown: str) -> None:
    is_right = type(value) is expected
    if value is not None and not is_right:
        raise bad_request(
            f"json: cannot unmarshal {type_name(value)} into Go struct field {field} "
            f"of type {shown}"
        )


def _from_query(query: Query) -> Raw:
    given: Raw = {"gracePeriodSeconds": integer_of(query, "gracePeriodSeconds")}
    if "orphanDependents" in query:
        given["orphanDependents"] = truth_of(query, "orphanDependents")
    if "propagationPolicy" in query:
        given["propagationPolicy"] = text_of(query, "propagationPolicy")
    given["dryRun"] = list(query.get("dryRun", []))
    return given


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
    """What a delete is answered with: the object that is left or was, or a success."""

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
        resource = order.resource
        _check_not_permanent(resource, order.name)
        stored = self._store.get(order.key)
        if stored is None:
            raise not_found(resource.as_resource, order.name)
        _check_preconditions(resource, stored, options)
        write = msgspec.structs.replace(self._writer.context(order), dry_run=options.dry_run)
        old = resource.read_metadata(stored)
        self._approve(order, old, write)
        marked = self._marked(resource, old, options, write)
        if marked is old and not _is_waiting(old):
            return self._remove(resource, stored, options)
        pending = self._mark(resource, stored, marked, options)
        if _is_over(marked) and not resource.strategy.is_held(marked):
            return self._remove(resource, pending.stored or stored, options, marked)
        return pending

    def _approve(self, order: Order, old: Raw, write: Write) -> None:
        """Raise if the object may not be deleted; an eviction has a check of its own."""
        if self._extensions.deletion is not None and not order.subresource:
            self._extensions.deletion(order.resource, old, write)

    def _marked(self, resource: Resource, obj: Raw, options: DeleteOptions, write: Write) -> Raw:
        """The object as the deletion leaves it; the same if it simply goes."""
        timed = self._timed(resource, obj, options)
        finalizers = _finalizers(resource, obj, options)
        graceful = timed is not obj
        if not graceful and _is_waiting(obj):
            return obj
        changed = _with_finalizers(timed, finalizers)
        if not finalizers and not graceful and not resource.strategy.is_held(changed):
            return obj
        if not graceful:
            changed = _marked_now(changed, write.now, is_held=not finalizers)
        return resource.strategy.prepare_delete(changed, write)

    def _timed(self, resource: Resource, obj: Raw, options: DeleteOptions) -> Raw:
        """With the time at which the grace is over; the same object if there is no grace."""
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            return self._shortened(obj, options.grace_seconds)
        grace = resource.strategy.grace_seconds(obj, options.grace_seconds)
        if grace is None:
            return obj
        at = timestamp(self._clock.now() + grace)
        changed = {**meta, "deletionTimestamp": at, "deletionGracePeriodSeconds": grace}
        return {**obj, "metadata": _next_generation(changed)}

    def _shortened(self, obj: Raw, grace: int | None) -> Raw:
        """A second delete may only make the wait shorter."""
        meta = obj["metadata"]
        before = meta.get("deletionGracePeriodSeconds")
        if not before or grace is None or grace >= before:
            return obj
        now = self._clock.now()
        at = seconds_of(meta["deletionTimestamp"]) - before + grace
        if at < now:
            # The wait is over; whoever was told to end the object still has to.
            at = now
            grace = 1 if grace else 0
        times = {"deletionTimestamp": timestamp(at), "deletionGracePeriodSeconds": grace}
        return {**obj, "metadata": {**meta, **times}}

    def _mark(
        self, resource: Resource, stored: Stored, marked: Raw, options: DeleteOptions
    ) -> Deleted:
        if resource.strategy.converts:
            # A deletion changes only metadata, and needs no conversion back.
            kept = _with_metadata_of(stored.object, marked)
        else:
            kept = resource.strategy.to_storage(marked)
        if options.dry_run or kept == stored.object:
            return Deleted(marked, Success(), is_pending=True)
        written = self._store.put(stored.key, kept, expected=stored.revision)
        assert isinstance(written, Stored), "no other write happens in between"
        return Deleted(written.object, Success(), written, is_pending=True)

    def _remove(
        self,
        resource: Resource,
        stored: Stored,
        options: DeleteOptions,
        marked: Raw | None = None,
    ) -> Deleted:
        name = stored.key.name
        uid = stored.object["metadata"].get("uid", "")
        success = Success(resource.as_resource.details(name, uid=uid))
        gone = stored
        if not options.dry_run:
            removed = self._store.delete(stored.key, expected=stored.revision)
            assert isinstance(removed, Stored), "no other write happens in between"
            gone = removed
        if not resource.deletion_shows_object:
            return Deleted(None, success, gone)
        if options.dry_run and marked is not None:
            return Deleted(marked, success)
        return Deleted(gone.object, success, gone)

    def delete_all(
        self, order: Order, options: DeleteOptions, found: tuple[Stored, ...]
    ) -> list[Stored]:
        """Deletes each; answers with what they were. One that is gone meanwhile is no matter."""
        if order.reviews is not None:
            self._have_reviewed(order, options, found)
        for each in found:
            one = msgspec.structs.replace(order, namespace=each.key.namespace, name=each.key.name)
            try:
                self.delete(one, options)
            except StatusError as error:
                if error.status.code != _NOT_FOUND:
                    raise
        return list(found)

    def _have_reviewed(
        self, order: Order, options: DeleteOptions, found: tuple[Stored, ...]
    ) -> None:
        """Has webhooks asked about all of them before the first is deleted."""
        needed: list[WebhookRequest[Any]] = []
        for each in found:
            one = msgspec.structs.replace(order, namespace=each.key.namespace, name=each.key.name)
            write = msgspec.structs.replace(self._writer.context(one), dry_run=options.dry_run)
            try:
                old = order.resource.read_metadata(each)
                self._approve(one, old, write)
            except ReviewNeededError as error:
                needed += error.questions
            except StatusError:
                # It is refused when its turn comes.
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


def _finalizers(resource: Resource, obj: Raw, options: DeleteOptions) -> list[str]:
    """Who has to agree: those who said so before, and the garbage collector if it is asked."""
    before = get(obj["metadata"], "finalizers", [])
    kept = [each for each in before if each not in (ORPHAN, FOREGROUND)]
    match _policy(resource, before, options):
        case "Orphan":
            kept.append(ORPHAN)
        case "Foreground":
            kept.append(FOREGROUND)
    return before if set(before) == set(kept) else kept


def _policy(resource: Resource, finalizers: list[str], options: DeleteOptions) -> str:
    """The request decides, else what the object says already, else its kind."""
    if options.orphans is not None:
        return "Orphan" if options.orphans else "Background"
    if options.policy is not None:
        return options.policy
    if ORPHAN in finalizers:
        return "Orphan"
    if FOREGROUND in finalizers:
        return "Foreground"
    return "Orphan" if resource.strategy.orphans_by_default else "Background"


def _is_waiting(obj: Raw) -> bool:
    """Whether an earlier delete gave a grace that is not over."""
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and bool(meta.get("deletionGracePeriodSeconds"))


def _is_over(marked: Raw) -> bool:
    """Whether nobody has to agree, and nobody is waited for."""
    meta = marked["metadata"]
    return not meta.get("finalizers") and meta.get("deletionGracePeriodSeconds") == 0


def _with_finalizers(obj: Raw, finalizers: list[str]) -> Raw:
    meta = obj["metadata"]
    if get(meta, "finalizers", []) == finalizers:
        return obj
    kept = {key: value for key, value in meta.items() if key != "finalizers"}
    if finalizers:
        kept["finalizers"] = finalizers
    return {**obj, "metadata": kept}


def _marked_now(obj: Raw, now: str, *, is_held: bool) -> Raw:
    meta = obj["metadata"]
    changed = dict(meta)
    if "deletionTimestamp" not in meta:
        changed = _next_generation({**meta, "deletionTimestamp": now})
    # What is held by its kind alone, as a namespace is, was given no grace to begin with.
    if not is_held:
        changed["deletionGracePeriodSeconds"] = 0
    return {**obj, "metadata": changed}


def _next_generation(meta: Raw) -> Raw:
    generation = meta.get("generation")
    return {**meta, "generation": generation + 1} if generation else meta
