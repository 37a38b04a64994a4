"""
An object as it comes out of the real server's decoder.

Fields that the kind does not have are dropped and complained about; a value of the wrong type is
refused, in the decoder's words; null is nothing; what is empty is left out where Go leaves it
out, and there where Go writes it; quantities and times have the one form in which they are
written. What is given is not changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.kinds import schemas
from dryrack.kinds.schemas import fast_decode
from dryrack.kinds.schemas import go_scalars as scalars
from dryrack.kinds.schemas.fast_decode import element_type
from dryrack.kinds.schemas.shape import skeleton
from dryrack.kinds.schemas.structs import UNSET
from dryrack.kinds.text.go_json import type_name
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas import Schema
    from dryrack.kinds.schemas.structs import GoField, Struct
    from dryrack.kinds.shape import Path

_COMPLAINTS_MAX = 100


class Conformed(msgspec.Struct, frozen=True):
    """
    An object with the fields that its kind has, and what was found besides.

    `unknown` are the places of fields that the kind does not have. `mismatch` is not "" if a value
    has the wrong type altogether: the whole sentence of the decoder (`json: cannot unmarshal
    number into Go struct field …`), and `mismatch_path` is the place of the value.
    """

    object: Raw
    unknown: tuple[Path, ...] = ()
    mismatch: str = ""
    mismatch_path: Path = ()

    @property
    def strict(self) -> tuple[str, ...]:
        """The complaints of strict decoding, with the messages and in the order of the server."""
        return tuple(f"unknown field {quoted(_format_path(path))}" for path in self.unknown)


def _format_path(path: Path) -> str:
    """Return a path in the notation of the server."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def conform(schema: Schema, obj: Raw) -> Conformed:
    """Return the object as Go would decode and encode it."""
    try:
        return Conformed(fast_decode.reader(schema, _written_unset)(obj))
    except fast_decode.UnusualError:
        return decode_strictly(schema, obj)


def _written_unset(schema: Schema, known: GoField) -> Any:
    is_written = known.is_written_unset and _is_shown(schema, known)
    return _unset(schema, known) if is_written else fast_decode.not_written()


def decode_strictly(schema: Schema, obj: Raw) -> Conformed:
    """Decode the object with all complaints."""
    reading = _Reading()
    try:
        made = reading.struct(schema, obj)
    except scalars.MismatchError as error:
        return Conformed(obj, (), str(error), tuple(reading.path))
    return Conformed(made, tuple(reading.unknown[:_COMPLAINTS_MAX]))


@dataclass(slots=True)
class _Reading:
    """
    One object being read.

    `path` leads to where the reader is, and stays there if it stumbles; `fields` are the same
    steps as Go names them, without places in lists, and `owners` the structs.
    """

    unknown: list[Path] = field(default_factory=list)
    path: list[str | int] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)

    def struct(self, schema: Schema, value: Any) -> Any:
        struct = schema.struct
        if struct is None:
            return value
        self.owners.append(schema.name.rpartition(".")[2])
        made: Raw = {}
        for name, inner in value.items():
            known = struct.get(name)
            if known is None:
                self.unknown.append((*self.path, name))
            elif inner is not None:
                below = schema.named(known.name)
                assert below is not None, f"{schema.name} has a field {known.name} in Go alone"
                self.fields.append(f"{known.inside}{known.name}")
                read = self._at(known.name, below, inner, known.type)
                self.fields.pop()
                if not known.is_left_out(read):
                    made[known.name] = read
        self.owners.pop()
        return _in_order(schema, struct, made)

    def _at(self, step: str | int, schema: Schema, value: Any, go_type: str) -> Any:
        self.path.append(step)
        read = self._value(schema, value, go_type)
        self.path.pop()
        return read

    def _value(self, schema: Schema, value: Any, go_type: str) -> Any:
        if go_type in UNSET:
            try:
                return scalars.special(go_type, value)
            except scalars.ForeignTypeError as error:
                what = f"json: cannot unmarshal {error.shown} into {self._place(error.wanted)}"
                raise scalars.MismatchError(what) from error
        if schema.type == "array":
            if not isinstance(value, list):
                raise self._mismatch(value, schema, go_type)
            items = schema.items
            if items is None:
                return value
            inner = element_type(go_type, items)
            return [
                self._at(at, items, _zero(items, inner) if item is None else item, inner)
                for at, item in enumerate(value)
            ]
        if schema.type == "object":
            return self._object(schema, value, go_type)
        if go_type == "[]uint8":
            return scalars.binary(value, self._place(go_type))
        if schema.type == "" or scalars.fits(value, schema.type, schema.format):
            return value
        raise self._mismatch(value, schema, go_type)

    def _object(self, schema: Schema, value: Any, go_type: str) -> Any:
        if not isinstance(value, dict):
            raise self._mismatch(value, schema, go_type)
        if schema.struct is not None:
            return self.struct(schema, value)
        values = schema.values
        if values is None:
            return value
        inner = element_type(go_type, values)
        read = {
            key: self._at(key, values, _zero(values, inner) if each is None else each, inner)
            for key, each in value.items()
        }
        return dict(sorted(read.items()))

    def _place(self, go_type: str) -> str:
        return f"Go struct field {self.owners[-1]}.{'.'.join(self.fields)} of type {go_type}"

    def _mismatch(self, value: Any, schema: Schema, go_type: str) -> scalars.MismatchError:
        shown = type_name(value)
        if shown == "number" and schema.type == "integer":
            shown += f" {json.dumps(value)}"
        return scalars.MismatchError(f"json: cannot unmarshal {shown} into {self._place(go_type)}")


def _in_order(schema: Schema, struct: Struct, made: Raw) -> Raw:
    """Return the fields that Go writes, also unset ones, in the order of the struct."""
    ordered: Raw = {}
    for name, known in struct.items():
        if name in made:
            ordered[name] = made[name]
        elif known.is_written_unset and _is_shown(schema, known):
            ordered[name] = _unset(schema, known)
    return ordered


def _unset(schema: Schema, known: GoField) -> Any:
    below = schema.named(known.name) if known.is_struct else None
    if below is None or below.struct is None:
        return known.unset
    return _in_order(below, below.struct, {})


def _is_shown(schema: Schema, known: GoField) -> bool:
    """
    Return whether an unset field is shown.

    A null where something has to be would be refused anyway; those who look for it before that
    are spared the null.
    """
    return known.unset is not None or known.kind == "struct" or known.name not in schema.required


def _zero(schema: Schema, go_type: str) -> Any:
    """Return the value of null as an item of a list or a value of a map."""
    if go_type in UNSET:
        return UNSET[go_type]
    match schema.type:
        case "string":
            return ""
        case "boolean":
            return False
        case "integer" | "number":
            return 0
        case "array":
            return []
        case _:
            return dict(skeleton(schema))


def conform_custom(schema: Schema, obj: Raw) -> Conformed:
    """Return a custom object: decode its metadata, and prune the rest by its schema."""
    metadata = obj.get("metadata")
    unknown = []
    if isinstance(metadata, dict):
        read = conform(schemas.builtin()[schemas.OBJECT_META], metadata)
        if read.mismatch:
            return Conformed(obj, (), read.mismatch, ("metadata", *read.mismatch_path))
        obj = {**obj, "metadata": read.object}
        unknown = [("metadata", *path) for path in read.unknown]
    pruned = _prune(schema, obj, (), unknown)
    return Conformed(pruned, tuple(sorted(unknown, key=_format_path)))


def _prune(schema: Schema, value: Any, path: Path, unknown: list[Path]) -> Any:
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return [_prune(items, each, (*path, at), unknown) for at, each in enumerate(value)]
    if not isinstance(value, dict) or schema.name:
        return value
    is_object = bool(schema.raw.get("x-kubernetes-embedded-resource"))
    made: Raw = {}
    for name, each in value.items():
        below = schema.child(name)
        at = (*path, name)
        if is_object and name == "metadata":
            made[name] = _embedded_metadata(each, at, unknown)
        elif is_object and name in ("apiVersion", "kind"):
            made[name] = each
        elif below is not None:
            made[name] = _prune(below, each, at, unknown)
        elif (
            schema.extension("x-kubernetes-preserve-unknown-fields")
            or schema.raw.get("additionalProperties") is True
        ):
            made[name] = each
        else:
            unknown.append(at)
    return made


def _embedded_metadata(value: Any, path: Path, unknown: list[Path]) -> Any:
    """Return metadata of an embedded object; validation reports wrong types."""
    if not isinstance(value, dict):
        return value
    read = conform(schemas.builtin()[schemas.OBJECT_META], value)
    if read.mismatch:
        return value
    unknown += [(*path, *inner) for inner in read.unknown]
    return read.object
