"""
The object in a body.

JSON or YAML to an object of the kind that the path asks for, or the refusal that the real server
would give: for text that is neither, for another kind, for fields of the wrong type, and, if the
request is strict, for fields that are unknown or said twice.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from dryrack.apiserver.answer.status import StatusError, Subject, bad_request, invalid, too_large
from dryrack.apiserver.extension_points import Shapes
from dryrack.apiserver.http import media
from dryrack.apiserver.registry import Registry, Resource
from dryrack.base.limits import REQUEST_BODY_BYTES_MAX
from dryrack.client.transport import Request
from dryrack.kinds.raw import Raw
from dryrack.kinds.text import go_json
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import invalid as invalid_value

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_SHOWN_BYTES = 30
_NO_KIND = "couldn't get version/kind; "
# How Go names the part of an object that every kind has; users see it when a body is no object.
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


# The real server takes 10,000 levels, and no kind has a tenth of these; every function that
# goes down into an object and calls itself has to fit onto the stack at this depth.
DEPTH_MAX = 200
_TOO_DEEP = "exceeded max depth"


def read_json(body: bytes) -> Any:
    """Return the value of a JSON text; raise `GoSyntaxError` for what Go does not take."""
    try:
        value = _read_slowly(body) if go_json.may_have_long_number(body) else _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _read_slowly(body)
    # Nothing is deeper than it has openings; most bodies have few.
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX and is_too_deep(value):
        raise go_json.GoSyntaxError(_TOO_DEEP)
    return value


def is_too_deep(value: Any) -> bool:
    """Whether a value is nested more than `DEPTH_MAX` levels deep."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(DEPTH_MAX):
        below = [each.values() if type(each) is dict else each for each in level]
        level = [each for inner in below for each in inner if type(each) in (dict, list)]
        if not level:
            return False
    return True


def _read_slowly(body: bytes) -> Any:
    """What Go takes and a strict reader does not: bytes that are no UTF-8, halves of pairs."""
    try:
        value = go_json.read_text(body)
    except RecursionError:
        raise go_json.GoSyntaxError(_TOO_DEEP) from None
    # Halves of surrogate pairs have no UTF-8; Go reads them as the replacement character.
    whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(whole.decode("utf-16-le", "replace"))


def checked_size(request: Request) -> bytes:
    """The body, if it is not too large."""
    if len(request.body) > REQUEST_BODY_BYTES_MAX:
        raise too_large(REQUEST_BODY_BYTES_MAX)
    return request.body


class Bodies:
    """Reads objects of the kinds of a registry."""

    def __init__(self, registry: Registry, shapes: Shapes) -> None:
        self._registry = registry
        self._shapes = shapes

    def read(
        self, request: Request, resource: Resource, *, validation: str, warnings: list[str]
    ) -> Raw:
        """The object in the body of a create or an update."""
        body = checked_size(request)
        media_type = media.body_type(request.headers)
        obj, again = self._parsed(body, media_type, resource)
        _check_type_meta(obj, resource, body)
        if resource.is_custom:
            _check_custom_kind(obj, resource, body)
        if validation != "Ignore" and media_type == media.JSON:
            # Before its kind is completed: it is compared with the text.
            again = repeated_fields(body, obj)
        self.check_kind(obj, resource)
        return self.conformed(obj, resource, validation, again=again, warnings=warnings)

    def _parsed(
        self, body: bytes, media_type: str, resource: Resource
    ) -> tuple[Raw, tuple[str, ...]]:
        again: tuple[str, ...] = ()
        try:
            if media_type == media.YAML:
                value, again = read_yaml(body)
            else:
                value = read_json(body)
        except go_json.YamlError as error:
            raise _unrecognized(resource, body, str(error)) from None
        except go_json.GoSyntaxError as error:
            raise _unrecognized(resource, body, f"{_NO_KIND}json parse error: {error}") from None
        if value is not None and not isinstance(value, dict):
            raise _unrecognized(resource, body, no_object(value))
        return value or {}, again

    def check_kind(
        self,
        obj: Raw,
        resource: Resource,
        refusal: Callable[[str], StatusError] | None = None,
    ) -> None:
        """Completes or refuses apiVersion and kind."""
        kind = obj.get("kind") or ""
        api_version = obj.get("apiVersion") or ""
        if kind == resource.kind and api_version == resource.api_version:
            return
        obj["kind"] = kind or resource.kind
        obj["apiVersion"] = api_version or resource.api_version
        if obj["kind"] != resource.kind or obj["apiVersion"] != resource.api_version:
            raise self._other_kind(resource, (obj["kind"], obj["apiVersion"]), refusal)

    def _other_kind(
        self,
        resource: Resource,
        given: tuple[str, str],
        refusal: Callable[[str], StatusError] | None,
    ) -> StatusError:
        kind, api_version = given
        if kind == resource.kind or resource.is_custom:
            return bad_request(
                f"the API version in the data ({api_version}) does not match the expected API "
                f"version ({resource.api_version})"
            )
        detail = not_registered(kind, api_version)
        if self._registry.by_kind(api_version, kind) is not None:
            detail = f"{api_version} {kind} is no {resource.kind}"
        version = api_version.rpartition("/")[2]
        return refusal(detail) if refusal else _mishandled(kind, version, resource, detail)

    def conformed(
        self,
        obj: Raw,
        resource: Resource,
        validation: str,
        *,
        again: tuple[str, ...],
        warnings: list[str],
        refusal: Callable[[str], StatusError] | None = None,
    ) -> Raw:
        """
        The object with the fields of its kind; complaints become warnings or a refusal.

        `again` are those about fields that are said twice; they come first.
        """
        found = self._shapes.conform(resource, obj)
        refused = refusal or (lambda detail: _mishandled_as(resource, detail))
        if found.mismatch:
            raise refused(found.mismatch)
        strict = (*again, *found.strict)
        if strict and validation == "Strict":
            detail = f"strict decoding error: {', '.join(strict)}"
            raise refused(detail)
        if strict and validation == "Warn":
            warnings.extend(line for each in strict for line in _as_warnings(each))
        return found.object


def no_object(value: Any) -> str:
    """What is said of JSON that is no object."""
    what = f"cannot unmarshal {go_json.type_name(value)} into Go value of type {_TYPE_META}"
    return f"{_NO_KIND}json parse error: json: {what}"


def not_registered(kind: str, api_version: str) -> str:
    """What is said of a kind that is not there."""
    return (
        f"no kind {quoted(kind)} is registered for version {quoted(api_version)} "
        'in scheme "pkg/runtime/scheme.go:111"'
    )


def _check_type_meta(obj: Raw, resource: Resource, body: bytes) -> None:
    detail = type_meta_problem(obj)
    if detail:
        raise _unrecognized(resource, body, detail)


def type_meta_problem(obj: Raw) -> str:
    """What is said of a kind or an apiVersion that is no text; "" if both are."""
    for name in ("kind", "apiVersion"):
        value = obj.get(name)
        if value is not None and not isinstance(value, str):
            what = f"cannot unmarshal {go_json.type_name(value)} into Go struct field .{name}"
            return f"{_NO_KIND}json parse error: json: {what} of type string"
    return ""


def _check_custom_kind(obj: Raw, resource: Resource, body: bytes) -> None:
    """Custom objects say what they are; nothing is assumed."""
    shown = body.decode("utf-8", "replace")
    kind = obj.get("kind")
    version = obj.get("apiVersion")
    if not kind:
        raise _unrecognized(resource, body, f"Object 'Kind' is missing in '{shown}'")
    if not version:
        raise _unrecognized(resource, body, f"Object 'apiVersion' is missing in '{shown}'")
    if kind != resource.kind and version == resource.api_version:
        meta = obj.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else ""
        problem = invalid_value("kind", kind, f"must be {resource.kind}")
        raise invalid(Subject(resource.group, kind), name or "", (problem,))


def _unrecognized(resource: Resource, body: bytes, detail: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): "
        f"{detail} ({_summary(body)})"
    )


def _mishandled_as(resource: Resource, detail: str) -> StatusError:
    return _mishandled(resource.kind, resource.version, resource, detail)


def _mishandled(kind: str, version: str, resource: Resource, detail: str) -> StatusError:
    return bad_request(
        f"{kind} in version {quoted(version)} cannot be handled as a {resource.kind}: {detail}"
    )


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown = body[:_SHOWN_BYTES]
    more = " ..." if len(body) > _SHOWN_BYTES else ""
    return (shown.decode("utf-8", "replace") if body[:1] == b"{" else shown.hex()) + more


def read_yaml(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """The first document, and a complaint if it says keys twice; raises `YamlError`."""
    from dryrack.apiserver.answer import go_yaml

    return go_yaml.read(body)


def _as_warnings(complaint: str) -> list[str]:
    """What a client is warned of: of YAML line by line, without what is around it."""
    _, found, lines = complaint.partition("yaml: unmarshal errors:\n")
    return [line.strip() for line in lines.split("\n")] if found else [complaint]


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, with keys that may repeat."""


def repeated_fields(body: bytes, value: Any) -> tuple[str, ...]:
    """Complaints about keys that are twice in a JSON text, in its order; `value` is its value."""
    # A key that is dropped makes the text shorter. What a program writes is compact, so that the
    # lengths are mostly equal, and the slow way is left to what people write by hand.
    encoded = _encode(value)
    if len(encoded) == len(body.rstrip()):
        return ()
    # With it go its quotes; nothing else makes them fewer, and only an escape makes them more.
    if encoded.count(b'"') == body.count(b'"') and b"\\u0022" not in body:
        return ()
    try:
        pairs = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(_complaints(pairs, "")))


def _complaints(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, each in value:
            at = f"{path}.{key}" if path else key
            if key in seen:
                yield f"duplicate field {quoted(at)}"
            seen.add(key)
            yield from _complaints(each, at)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _complaints(each, f"{path}[{index}]")
