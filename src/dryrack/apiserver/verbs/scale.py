"""
The `scale` subresource: the replicas of an object, in one form for all kinds.

A scale is computed from the object. It is put, patched or applied like any object, and its number
is written into the object under the usual rules of an update. The writer owns that one field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver import metadata
from dryrack.apiserver.answer.status import internal_error, not_found, unsupported_media_type
from dryrack.apiserver.decode import bodies
from dryrack.apiserver.decode.bodies import Bodies
from dryrack.apiserver.extension_points import Manager, Patch, Reply
from dryrack.apiserver.http import media
from dryrack.apiserver.http.queries import write_options
from dryrack.apiserver.metadata import timestamp
from dryrack.apiserver.ownership.server_side_apply import manager_name
from dryrack.apiserver.registry import Resource, Subresource
from dryrack.apiserver.strategy import Strategy
from dryrack.apiserver.verbs.writing import Order, Proposal
from dryrack.kinds.paths import get, metadata_of, spec_of
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.problems import FieldProblem, invalid
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dryrack.apiserver.extension_points import Call
    from dryrack.apiserver.http.queries import WriteOptions
    from dryrack.kinds.raw import Raw

APPLY = "application/apply-patch+yaml"
SCALE = Resource(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    namespaced=True,
    strategy=Strategy(KindRules(namespaced=True)),
)
_NAMES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_REPLICAS_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of an object's numbers, as a definition writes them: with a dot in front."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""
    """The path of a string; workloads have none, because their selector is an object."""

    @staticmethod
    def of(raw: Mapping[str, Any] | None) -> ScalePaths | None:
        if raw is None:
            return None
        keys = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        return ScalePaths(*(raw.get(key) or "" for key in keys))

    def problems(self, obj: Raw, *, status_alone: bool = False) -> Iterator[FieldProblem]:
        """Yield problems of replicas that are no count, and of a selector that is no string."""
        for path in (self.status,) if status_alone else (self.spec, self.status):
            value = _at(obj, path)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                yield invalid(path, value, "must be an integer")
            elif value < 0:
                yield invalid(path, value, "should be a non-negative integer")
            elif value > _REPLICAS_MAX:
                yield invalid(path, value, f"should be less than or equal to {_REPLICAS_MAX}")
        selector = _at(obj, self.selector) if self.selector else None
        if selector is not None and not isinstance(selector, str):
            yield invalid(self.selector, selector, "must be a string")


def _at(obj: Raw, path: str) -> Any:
    """Return the value at a path, or None."""
    value: Any = obj
    for name in path.removeprefix(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _with(value: Any, names: list[str], replicas: int) -> Any:
    """Return the value with a number at a path."""
    if not names:
        return replicas
    inner = value if isinstance(value, dict) else {}
    return {**inner, names[0]: _with(inner.get(names[0]), names[1:], replicas)}


def scale_subresource(paths: ScalePaths) -> Subresource:
    """Return the scale subresource of a kind whose objects have these paths."""
    scale = Scale(paths)
    return Subresource(
        name="scale",
        kind="Scale",
        group="autoscaling",
        version="v1",
        handlers={"get": scale.get, "update": scale.update, "patch": scale.patch},
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """Reads and writes the scales of a kind."""

    paths: ScalePaths

    async def get(self, call: Call) -> Reply:
        target = call.target
        stored = call.server.store.get(Key(target.resource.storage, target.namespace, target.name))
        if stored is None:
            raise not_found(target.resource.as_resource, target.name)
        obj = target.resource.read(stored)
        if target.resource.is_custom and _at(obj, self.paths.spec) is None:
            raise internal_error(f'the spec replicas field "{self.paths.spec}" does not exist')
        return Reply(self._scale_of(obj, stored.revision))

    async def update(self, call: Call) -> Reply:
        options = write_options(call.parameters, "UpdateOptions")
        sent = _read(call, options)
        return self._write(call, options, lambda obj: Proposal(self._with_scale(obj, sent)))

    async def patch(self, call: Call) -> Reply:
        media_type = media.without_parameters(call.request.headers.get("content-type", ""))
        resource = call.target.resource
        accepted = call.server.extensions.patching.media_types(resource)
        if media_type not in accepted:
            raise unsupported_media_type(accepted if resource.is_custom else ())
        is_apply = media_type == APPLY
        options = write_options(call.parameters, "PatchOptions", is_apply=is_apply)
        manager = _manager(call, options, "Apply" if is_apply else "Update")
        body = bodies.body_of(call.request)
        patch = Patch(media_type, body, manager, force=options.force)
        change = self._propose_applied if is_apply else self._propose_patched
        return self._write(call, options, lambda obj: change(call, options, patch, obj))

    def _propose_patched(
        self, call: Call, options: WriteOptions, patch: Patch, obj: Raw
    ) -> Proposal:
        made = call.server.extensions.patching.apply_patch(SCALE, self._scale_of(obj), patch)
        reader = Bodies(call.server.registry, call.server.extensions.shapes)
        reader.check_kind(made.object, SCALE)
        validation = options.field_validation
        warnings = call.warnings
        new = reader.conform(
            made.object, SCALE, validation, repeated=made.strict, warnings=warnings
        )
        metadata.check_name(metadata_of(new), call.target.name)
        return Proposal(self._with_scale(obj, new), is_patch=True)

    def _propose_applied(
        self, call: Call, options: WriteOptions, patch: Patch, obj: Raw
    ) -> Proposal:
        """Apply the one field of a scale to the object."""
        _read(call, options)
        # From the body as it was sent, because decoding as a Scale drops a number of 0.
        spec = spec_of(bodies.read_yaml(patch.body)[0])
        wanted: Raw = {key: obj[key] for key in ("apiVersion", "kind")}
        wanted["metadata"] = {"name": call.target.name}
        if spec.get("replicas") is not None:
            wanted = self._with_replicas(wanted, spec["replicas"])
        patching = call.server.extensions.patching
        body = msgspec.json.encode(wanted)
        made = patching.apply_patch(call.target.resource, obj, replace(patch, body=body))
        return Proposal(made.object, is_managed=True, is_patch=True)

    def _write(self, call: Call, options: WriteOptions, change: Callable[[Raw], Proposal]) -> Reply:
        target = call.target

        def propose(obj: Raw | None) -> Proposal:
            if obj is None:
                raise not_found(target.resource.as_resource, target.name)
            return change(obj)

        order = Order(
            target.resource,
            target.namespace,
            target.name,
            call.request.user,
            subresource="scale",
            options=options,
            manager=_manager(call, options, "Update").name,
            warnings=call.warnings,
            reviews=call.reviews,
            shown=self._scale_of,
        )
        written = call.server.verbs.writer.update(order, propose)
        revision = written.stored.revision if written.stored else None
        return Reply(self._scale_of(written.object, revision))

    def _scale_of(self, obj: Raw, revision: int | None = None) -> Raw:
        meta = {name: obj["metadata"][name] for name in _NAMES if name in obj["metadata"]}
        if revision is not None:
            meta["resourceVersion"] = str(revision)
        replicas = _at(obj, self.paths.spec)
        status: Raw = {"replicas": _at(obj, self.paths.status) or 0}
        selector = self._selector(obj)
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": meta,
            "spec": {"replicas": replicas} if replicas else {},
            "status": status | ({"selector": selector} if selector else {}),
        }

    def _selector(self, obj: Raw) -> str:
        if self.paths.selector:
            return _at(obj, self.paths.selector) or ""
        selector = _at(obj, ".spec.selector") if self.paths == _WORKLOAD else None
        if selector and obj.get("kind") == "ReplicationController":
            # Older than selectors with operators.
            selector = {"matchLabels": selector}
        return _selector_text(selector or {})

    def _with_scale(self, obj: Raw, scale: Raw) -> Raw:
        """Return the object with the scale's replicas, at the revision that the client has seen."""
        given = metadata_of(scale)
        seen = {key: given[key] for key in ("resourceVersion", "uid") if given.get(key)}
        replicas = spec_of(scale).get("replicas", 0)
        return {**self._with_replicas(obj, replicas), "metadata": {**obj["metadata"], **seen}}

    def _with_replicas(self, obj: Raw, replicas: int) -> Raw:
        made: Raw = _with(obj, self.paths.spec.removeprefix(".").split("."), replicas)
        return made


_WORKLOAD = ScalePaths()
WORKLOAD_SCALE = Scale(_WORKLOAD)


def _read(call: Call, options: WriteOptions) -> Raw:
    """Return the scale in a body; the body of an apply is YAML."""
    request = call.request
    if media.without_parameters(request.headers.get("content-type", "")) == APPLY:
        request = msgspec.structs.replace(
            request, headers={**request.headers, "content-type": media.YAML}
        )
    reader = Bodies(call.server.registry, call.server.extensions.shapes)
    validation = options.field_validation
    warnings = call.warnings
    scale = reader.read(request, SCALE, validation=validation, warnings=warnings)
    metadata.check_name(metadata_of(scale), call.target.name)
    return scale


def _manager(call: Call, options: WriteOptions, operation: str) -> Manager:
    name = manager_name(options.field_manager, call.request.headers.get("user-agent", ""))
    return Manager(name, operation, "scale", timestamp(call.server.clock.now()))


def _selector_text(selector: Raw) -> str:
    """Return a selector in the form of queries, its terms in the order of their keys."""
    terms = [(key, f"{key}={value}") for key, value in get(selector, "matchLabels", {}).items()]
    terms += [
        (each.get("key") or "", _term(each)) for each in get(selector, "matchExpressions", ())
    ]
    return ",".join(text for _, text in sorted(terms))


def _term(given: Raw) -> str:
    key = given.get("key") or ""
    values = ",".join(sorted(get(given, "values", ())))
    match given.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case _:
            return f"!{key}"
