"""
The object in the body of a request.

Decodes JSON or YAML to an object of the kind that the path names, or raises the refusal of the
real server: for other text, for another kind, for fields of the wrong type, and, if the request
is strict, for fields that are unknown or repeated.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
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
# The Go type of the fields that every kind has; users see it when a body is no object.
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


# The real server takes 10,000 levels, and no kind has a tenth of these; recursive functions must
# fit onto the stack at this depth.
DEPTH_MAX = 200
_TOO_DEEP = "exceeded max depth"


def read_json(body: bytes) -> Any:
    """Return the value of a JSON text; raise `GoSyntaxError` for what Go does not take."""
    try:
        value = _read_slowly(body) if go_json.may_have_long_number(body) else _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _read_slowly(body)
    # A value is never deeper than its number of brackets; most bodies have few.
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX and is_too_deep(value):
        raise go_json.GoSyntaxError(_TOO_DEEP)
    return value


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested more than `DEPTH_MAX` levels deep."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(DEPTH_MAX):
        below = [each.values() if type(each) is dict else each for each in level]
        level = [each for inner in below for each in inner if type(each) in (dict, list)]
        if not level:
            return False
    return True


def _read_slowly(body: bytes) -> Any:
    """Read what Go accepts and a strict reader does not: invalid UTF-8, unpaired surrogates."""
    try:
        value = go_json.read_text(body)
    except RecursionError:
        raise go_json.GoSyntaxError(_TOO_DEEP) from None
    # Go reads an unpaired surrogate as the replacement character.
    text = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(text.decode("utf-16-le", "replace"))


def body_of(request: Request) -> bytes:
    """Return the body, or refuse one that is too large."""
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
        """Return the object in the body of a create or an update."""
        body = body_of(request)
        media_type = media.body_type(request.headers)
        repeated: tuple[str, ...] = ()
        try:
            if media_type == media.YAML:
                value, repeated = read_yaml(body)
            else:
                value = read_json(body)
        except go_json.YamlError as error:
            raise _unrecognized(resource, body, str(error)) from None
        except go_json.GoSyntaxError as error:
            raise _unrecognized(resource, body, f"{_NO_KIND}json parse error: {error}") from None
        if value is not None and not isinstance(value, dict):
            raise _unrecognized(resource, body, not_an_object(value))
        obj: Raw = value or {}
        problem = type_meta_problem(obj)
        if problem:
            raise _unrecognized(resource, body, problem)
        if resource.is_custom:
            _check_custom_kind(obj, resource, body)
        if validation != "Ignore" and media_type == media.JSON:
            # Before `check_kind` completes the object, because it is compared with the text.
            repeated = repeated_fields(body, obj)
        self.check_kind(obj, resource)
        order = None
        if repeated and media_type == media.JSON:
            order = partial(in_document_order, body)
        return self.conform(
            obj, resource, validation, repeated=repeated, order=order, warnings=warnings
        )

    def check_kind(
        self,
        obj: Raw,
        resource: Resource,
        refusal: Callable[[str], StatusError] | None = None,
    ) -> None:
        """Set a missing apiVersion and kind; raise for those of another kind."""
        kind = obj.get("kind") or ""
        api_version = obj.get("apiVersion") or ""
        if kind == resource.kind and api_version == resource.api_version:
            return
        kind = obj["kind"] = kind or resource.kind
        api_version = obj["apiVersion"] = api_version or resource.api_version
        if kind == resource.kind and api_version == resource.api_version:
            return
        if kind == resource.kind or resource.is_custom:
            raise bad_request(
                f"the API version in the data ({api_version}) does not match the expected API "
                f"version ({resource.api_version})"
            )
        detail = not_registered(kind, api_version)
        if self._registry.by_kind(api_version, kind) is not None:
            detail = f"{api_version} {kind} is no {resource.kind}"
        version = api_version.rpartition("/")[2]
        raise refusal(detail) if refusal else _mishandled(kind, version, resource, detail)

    def conform(
        self,
        obj: Raw,
        resource: Resource,
        validation: str,
        *,
        repeated: tuple[str, ...],
        warnings: list[str],
        order: Callable[[Iterable[str]], Iterable[str]] | None = None,
        refusal: Callable[[str], StatusError] | None = None,
    ) -> Raw:
        """
        Return the object with the fields of its kind; complaints become warnings or a refusal.

        `repeated` are the complaints about repeated fields; they come first, or as `order` says.
        """
        conformed = self._shapes.conform(resource, obj)
        detail = conformed.mismatch
        strict = (*repeated, *conformed.strict)
        if order is not None and conformed.strict:
            strict = tuple(order(strict))
        if strict and validation == "Strict" and not detail:
            detail = f"strict decoding error: {', '.join(strict)}"
        if detail:
            refuse = refusal or partial(_mishandled, resource.kind, resource.version, resource)
            raise refuse(detail)
        if strict and validation == "Warn":
            for complaint in strict:
                # Of YAML, each line is a warning.
                _, yaml_head, lines = complaint.partition("yaml: unmarshal errors:\n")
                warnings.extend(
                    [line.strip() for line in lines.split("\n")] if yaml_head else [complaint]
                )
        return conformed.object


def not_an_object(value: Any) -> str:
    """Return the refusal of JSON that is no object."""
    what = f"cannot unmarshal {go_json.type_name(value)} into Go value of type {_TYPE_META}"
    return f"{_NO_KIND}json parse error: json: {what}"


def not_registered(kind: str, api_version: str) -> str:
    """Return the refusal of an unknown kind."""
    return (
        f"no kind {quoted(kind)} is registered for version {quoted(api_version)} "
        'in scheme "pkg/runtime/scheme.go:111"'
    )


def type_meta_problem(obj: Raw) -> str:
    """Return the refusal of a kind or an apiVersion that is no string; "" if both are strings."""
    for name in ("kind", "apiVersion"):
        value = obj.get(name)
        if value is not None and not isinstance(value, str):
            what = f"cannot unmarshal {go_json.type_name(value)} into Go struct field .{name}"
            return f"{_NO_KIND}json parse error: json: {what} of type string"
    return ""


def _check_custom_kind(obj: Raw, resource: Resource, body: bytes) -> None:
    """Raise for a custom object without kind or apiVersion, or of another kind."""
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
    shown_bytes = body[:_SHOWN_BYTES]
    more = " ..." if len(body) > _SHOWN_BYTES else ""
    shown = shown_bytes.hex()
    if body[:1] == b"{":
        shown = shown_bytes.decode("utf-8", "replace")
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): "
        f"{detail} ({shown + more if body else '<empty>'})"
    )


def _mishandled(kind: str, version: str, resource: Resource, detail: str) -> StatusError:
    return bad_request(
        f"{kind} in version {quoted(version)} cannot be handled as a {resource.kind}: {detail}"
    )


def read_yaml(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """Return the first document, and a complaint if it repeats keys; raise `YamlError`."""
    from dryrack.apiserver.answer import go_yaml

    return go_yaml.read(body)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, with repeated keys."""


def repeated_fields(body: bytes, value: Any) -> tuple[str, ...]:
    """Return complaints about repeated keys of a JSON text, in its order; `value` is its value."""
    # Decoding drops a repeated key, so the encoded value is shorter. Programs write compact JSON,
    # so the lengths are mostly equal, and only text that people write takes the slow way.
    encoded = _encode(value)
    if len(encoded) == len(body.rstrip()):
        return ()
    # Only a dropped key makes the quotes fewer, and only an escape makes them more.
    if encoded.count(b'"') == body.count(b'"') and b"\\u0022" not in body:
        return ()
    try:
        pairs = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return ()
    complaints = _field_complaints(pairs, "")
    return tuple(dict.fromkeys(each for each in complaints if each.startswith("duplicate")))


def in_document_order(body: bytes, complaints: Iterable[str]) -> Sequence[str]:
    """Return the complaints about fields of a JSON text in the order of the fields."""
    places: dict[str, int] = {}
    for each in _field_complaints(json.loads(body, object_pairs_hook=_Pairs), ""):
        places.setdefault(each, len(places))
    return sorted(complaints, key=lambda each: places.get(each, -1))


def _field_complaints(value: Any, path: str) -> Iterator[str]:
    """Yield all complaints that a JSON text can cause, in its order."""
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, each in value:
            field = f"{path}.{key}" if path else key
            yield f"{'duplicate' if key in seen else 'unknown'} field {quoted(field)}"
            seen.add(key)
            yield from _field_complaints(each, field)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _field_complaints(each, f"{path}[{index}]")
