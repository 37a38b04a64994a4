"""
Which form an answer has, and which a body is in.

Kubernetes packs three things into Accept: the encoding, a conversion of the object (a table for
people, metadata alone), and a stream. What is asked for in a form that is not served is passed
over for the next clause, as the real server does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from dryrack.apiserver.answer.status import (
    no_representation,
    not_acceptable,
    unsupported_media_type,
)

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
# Protobuf is not served: JSON is what every client can speak. It is read, where HTTP comes in.
SERVED = (JSON, YAML)
# A watch is a stream of JSON documents.
STREAMED = (f"{JSON};stream=watch",)
_READ = (JSON, YAML, PROTOBUF)

_META_VERSIONS = ("v1", "v1beta1")
_ENCODINGS = {
    JSON: JSON,
    YAML: YAML,
    "application/*": JSON,
    "*/*": JSON,
}


class Shape(Enum):
    """What becomes of the object on its way out."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"


_SHAPES = frozenset(Shape)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client accepts."""

    encoding: str = JSON
    shape: Shape = Shape.OBJECT
    meta_version: str = "v1"

    @property
    def is_plain(self) -> bool:
        """Whether stored JSON can go out as it is."""
        return self.encoding == JSON and self.shape is Shape.OBJECT


PLAIN = Wanted()


def wanted(headers: Mapping[str, str]) -> Wanted:
    """Return the best form that the client accepts and the server has."""
    return _wanted(headers, _SHAPES, SERVED)


def wanted_without_tables(headers: Mapping[str, str]) -> Wanted:
    """Return the best form of what the server never shows as a table."""
    return _wanted(headers, _SHAPES - {Shape.TABLE}, SERVED)


def wanted_of_stream(headers: Mapping[str, str]) -> Wanted:
    """Return the best form for the events of a watch."""
    return _wanted(headers, _SHAPES, STREAMED)


def _wanted(
    headers: Mapping[str, str], shapes: frozenset[Shape], served: tuple[str, ...]
) -> Wanted:
    accept = headers.get("accept", "")
    if not accept or accept == JSON:
        return PLAIN
    found = _negotiated(accept, shapes, is_stream=served is STREAMED)
    if found is None:
        # The real server's router looks at the media type alone, what is behind it at the rest.
        is_served = any(_clause(each)[0] in _ENCODINGS for each in accept.split(","))
        raise not_acceptable(served) if is_served else no_representation(SERVED)
    return found


@lru_cache(maxsize=256)
def _negotiated(accept: str, shapes: frozenset[Shape], *, is_stream: bool) -> Wanted | None:
    clauses = [_clause(each) for each in accept.split(",")]
    # A stable sort: of equal weight, the first one wins.
    for media_type, parameters, _ in sorted(clauses, key=lambda each: -each[2]):
        encoding = _ENCODINGS.get(media_type)
        if is_stream and encoding != JSON:
            continue
        found = _converted(encoding, parameters) if encoding else None
        if found and found.shape in shapes:
            return found
    return None


def _clause(text: str) -> tuple[str, dict[str, str], float]:
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters = {}
    for each in rest:
        name, _, value = each.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return media_type.lower(), parameters, _weight(parameters.pop("q", "1"))


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _converted(encoding: str, parameters: Mapping[str, str]) -> Wanted | None:
    if parameters.get("stream", "watch") != "watch":
        return None
    kind = parameters.get("as", "")
    if not kind:
        return Wanted(encoding) if not {"g", "v"} & parameters.keys() else None
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _META_VERSIONS:
        return None
    shapes = {shape.value: shape for shape in Shape if shape.value}
    shape = shapes.get(kind)
    return Wanted(encoding, shape, parameters["v"]) if shape else None


def body_type(headers: Mapping[str, str]) -> str:
    """The media type of a body: without one it is JSON."""
    given = headers.get("content-type", "")
    if not given or given == JSON:
        return JSON
    media_type = bare(given)
    if media_type not in SERVED:
        raise unsupported_media_type(_READ)
    return media_type


def bare(content_type: str) -> str:
    """A media type without its parameters."""
    return content_type.partition(";")[0].strip().lower()
