"""
The form of an answer, and the encoding of a body.

Kubernetes packs three things into Accept: the encoding, a conversion of the object (a table for
people, metadata alone), and a stream. A clause for a form that is not served is skipped, as the
real server does.
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
# Protobuf is not served, because every client reads JSON. Bodies in Protobuf are decoded by `http`.
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
    """The conversion of an object for an answer."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"


ALL_SHAPES = frozenset(Shape)
_SHAPE_NAMES = frozenset(shape.value for shape in Shape if shape.value)
SHAPES_WITHOUT_TABLE = ALL_SHAPES - {Shape.TABLE}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form that a client accepts."""

    encoding: str = JSON
    shape: Shape = Shape.OBJECT
    meta_version: str = "v1"

    @property
    def is_plain(self) -> bool:
        """Return whether stored JSON can go out as it is."""
        return self.encoding == JSON and self.shape is Shape.OBJECT


PLAIN = Wanted()


def wanted(
    headers: Mapping[str, str],
    shapes: frozenset[Shape] = ALL_SHAPES,
    served: tuple[str, ...] = SERVED,
) -> Wanted:
    """Return the best form that the client accepts and the server has."""
    accept = headers.get("accept", "")
    if not accept or accept == JSON:
        return PLAIN
    form = _negotiate(accept, shapes, is_stream=served is STREAMED)
    if form is None:
        # The real server's router refuses an unknown media type, and its handlers the rest.
        is_served = any(_parse_clause(each)[0] in _ENCODINGS for each in accept.split(","))
        raise not_acceptable(served) if is_served else no_representation(SERVED)
    return form


@lru_cache(maxsize=256)
def _negotiate(accept: str, shapes: frozenset[Shape], *, is_stream: bool) -> Wanted | None:
    clauses = [_parse_clause(each) for each in accept.split(",")]
    # A stable sort: of equal weight, the first one wins.
    for media_type, parameters, _ in sorted(clauses, key=lambda each: -each[2]):
        encoding = _ENCODINGS.get(media_type)
        if encoding is None or (is_stream and encoding != JSON):
            continue
        form = _form_of(encoding, parameters)
        if form is not None and form.shape in shapes:
            return form
    return None


def _parse_clause(text: str) -> tuple[str, dict[str, str], float]:
    """Return the media type, the parameters and the weight of a clause."""
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters = {}
    for each in rest:
        name, _, value = each.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    try:
        weight = float(parameters.pop("q", "1"))
    except ValueError:
        weight = 1.0
    return media_type.lower(), parameters, weight


def _form_of(encoding: str, parameters: Mapping[str, str]) -> Wanted | None:
    if parameters.get("stream", "watch") != "watch":
        return None
    kind = parameters.get("as", "")
    if not kind:
        return Wanted(encoding) if not {"g", "v"} & parameters.keys() else None
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _META_VERSIONS:
        return None
    return Wanted(encoding, Shape(kind), parameters["v"]) if kind in _SHAPE_NAMES else None


def body_type(headers: Mapping[str, str]) -> str:
    """Return the media type of a body: JSON if there is no header."""
    content_type = headers.get("content-type", "")
    if not content_type or content_type == JSON:
        return JSON
    media_type = without_parameters(content_type)
    if media_type not in SERVED:
        raise unsupported_media_type(_READ)
    return media_type


def without_parameters(content_type: str) -> str:
    """Return the media type without its parameters."""
    return content_type.partition(";")[0].strip().lower()
