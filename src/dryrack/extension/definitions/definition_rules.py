"""Custom resource definitions: their defaults and their problems.

Where all versions agree on a schema, on subresources or on columns, the server reports a problem
once, in the place that older definitions used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.extension.definitions.jsonpath import JsonPathError, parse_json_path
from dryrack.extension.definitions.reading import read_definition
from dryrack.extension.definitions.structure import schema_problems
from dryrack.extension.policies.webhook_clients import client_config_problems
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import Naming, common_metadata, metadata
from dryrack.kinds.validation.names import path_segment, subdomain
from dryrack.kinds.validation.problems import (
    FieldProblem,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.meta import ObjectMeta
    from dryrack.kinds.raw import Raw


# The name follows from the contents, and is judged together with them.
_NAMING = Naming(path_segment, None)


class DefinitionRules(KindRules):
    """CustomResourceDefinitions; `default` raises a `DefinitionError` for an unreadable schema."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, naming=_NAMING, has_status=True)

    def default(self, obj: Raw) -> Raw:
        obj = read_definition(obj)
        spec = dict(spec_of(obj))
        names = dict(get(spec, "names", {}))
        kind = names.get("kind") or ""
        if kind:
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        spec["names"] = names
        conversion = spec.get("conversion") or {"strategy": "None"}
        spec["conversion"] = update_at(
            conversion, "webhook.clientConfig.service", lambda one: set_missing(one, {"port": 443})
        )
        status = dict(status_of(obj))
        if not status.get("storedVersions"):
            stored = [v.get("name") for v in get(spec, "versions", ()) if v.get("storage")][:1]
            if stored:
                status["storedVersions"] = stored
        return {**obj, "spec": spec, "status": status}

    def as_new(self, obj: Raw) -> Raw:
        return {**obj, "status": {"storedVersions": obj["status"].get("storedVersions")}}

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        named = name_problem(obj)
        problems = [
            *metadata(meta, self.naming, namespaced=False, behaviour=self.behaviour),
            *((invalid("metadata.name", meta.name, named),) if named else ()),
            *problems_of_definition(obj),
        ]
        return problems or tuple(common_metadata(meta, namespaced=False, behaviour=self.behaviour))


_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
_WORD = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_WORD_BYTES_MAX = 63
_NO_WORD = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NO_PATH = "must be a simple json path starting with ."
_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_NEEDED = (
    f'protected groups must have approval annotation "{_APPROVAL}", '
    "see https://github.com/kubernetes/enhancements/pull/1111"
)


def word_problems(text: str) -> tuple[str, ...]:
    """Return why a text cannot be the first part of a host's name."""
    too_long = (f"must be no more than {_WORD_BYTES_MAX} characters",)
    spelled = () if _WORD.fullmatch(text) else (_NO_WORD,)
    return (*(too_long if len(text) > _WORD_BYTES_MAX else ()), *spelled)


def problems_of_definition(definition: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a definition, apart from its metadata."""
    spec = spec_of(definition)
    group = spec.get("group") or ""
    if not group:
        yield required("spec.group")
    elif told := subdomain(group):
        yield invalid("spec.group", group, ",".join(told))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    for index, version in enumerate(get(spec, "versions", ())):
        if schema_of(version) is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    yield from _versions(spec)
    names = get(spec, "names", {})
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    yield from _spelling_problems(names)
    yield from _shared(spec)
    yield from _conversion(get(spec, "conversion", {}))
    yield from _stored_versions(definition)
    yield from _approval(definition)


def name_problem(definition: Raw) -> str:
    """Return what is wrong with the name of a definition, which follows from its contents."""
    spec = spec_of(definition)
    wanted = f"{_of(spec, 'names', 'plural')}.{spec.get('group') or ''}"
    given = definition["metadata"].get("name") or ""
    return "" if given == wanted else 'must be spec.names.plural+"."+spec.group'


def _of(value: Mapping[str, Any], *path: str) -> Any:
    for key in path:
        value = value.get(key) or {}
    return value or ""


def schema_of(version: Raw) -> Raw | None:
    found: Raw | None = get(version, "schema.openAPIV3Schema")
    return found


def _agree(versions: list[Raw], key: str) -> bool:
    return all(version.get(key) == versions[0].get(key) for version in versions)


def _versions(spec: Raw) -> Iterator[FieldProblem]:
    versions = list(get(spec, "versions", ()))
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        if told := word_problems(version.get("name") or ""):
            yield invalid(f"{at}.name", version.get("name") or "", ",".join(told))
        yield from _version(version, at, versions)
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", spec.get("versions"), detail)
    if versions and names[0] and (told := word_problems(names[0])):
        yield invalid("spec.version", names[0], ",".join(told))


def _version(version: Raw, at: str, versions: list[Raw]) -> Iterator[FieldProblem]:
    schema = schema_of(version)
    if schema is not None and not _agree(versions, "schema"):
        yield from schema_problems(schema, f"{at}.schema.openAPIV3Schema")
    if not _agree(versions, "subresources"):
        yield from _subresources(get(version, "subresources", {}), f"{at}.subresources")
    if not _agree(versions, "additionalPrinterColumns"):
        yield from _columns(version, f"{at}.additionalPrinterColumns")
    if version.get("selectableFields") and not _agree(versions, "selectableFields"):
        at = f"{at}.selectableFields"
        # The server takes a schema that all versions share away before it looks for it here.
        if schema is None or _agree(versions, "schema"):
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            yield invalid(at, "", detail)
        else:
            yield from selectable_field_problems(version["selectableFields"], schema, at)


def _shared(spec: Raw) -> Iterator[FieldProblem]:
    versions = list(get(spec, "versions", ()))
    if not versions:
        return
    first = versions[0]
    schema = schema_of(first)
    if schema is not None and _agree(versions, "schema"):
        yield from schema_problems(schema, "spec.validation.openAPIV3Schema")
    if _agree(versions, "subresources"):
        yield from _subresources(get(first, "subresources", {}), "spec.subresources")
    if _agree(versions, "additionalPrinterColumns"):
        yield from _columns(first, "spec.additionalPrinterColumns")
    if first.get("selectableFields") and _agree(versions, "selectableFields"):
        at = "spec.selectableFields"
        if schema is None or not _agree(versions, "schema"):
            yield invalid(at, "", "may only be set when validations.schema is included")
        else:
            yield from selectable_field_problems(first["selectableFields"], schema, at)


def _spelling_problems(names: Raw) -> Iterator[FieldProblem]:
    for name in ("plural", "singular"):
        if names.get(name) and (told := word_problems(names[name])):
            yield invalid(f"spec.names.{name}", names[name], ",".join(told))
    for name in ("kind", "listKind"):
        if names.get(name) and (told := word_problems(names[name].lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(told)
            yield invalid(f"spec.names.{name}", names[name], detail)
    yield from _labels(names, "shortNames")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield invalid("spec.names.listKind", names["listKind"], detail)
    yield from _labels(names, "categories")


def _labels(names: Raw, key: str) -> Iterator[FieldProblem]:
    for index, word in enumerate(names.get(key) or ()):
        if told := word_problems(word):
            yield invalid(f"spec.names.{key}[{index}]", word, ",".join(told))


def _subresources(raw: Raw, at: str) -> Iterator[FieldProblem]:
    scale = raw.get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = scale.get(name) or ""
        if not path:
            yield required(f"{at}.scale.{name}")
        elif not path.startswith("."):
            yield invalid(f"{at}.scale.{name}", path, _NO_PATH)
        elif not path.startswith(f"{root}."):
            yield invalid(f"{at}.scale.{name}", path, f"should be a json path under {root}")
    selector = scale.get("labelSelectorPath") or ".spec."
    if not selector.startswith("."):
        yield invalid(f"{at}.scale.labelSelectorPath", selector, _NO_PATH)
    elif not selector.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        yield invalid(f"{at}.scale.labelSelectorPath", selector, detail)


def _columns(version: Raw, at: str) -> Iterator[FieldProblem]:
    for index, column in enumerate(get(version, "additionalPrinterColumns", ())):
        yield from _column(column, f"{at}[{index}]")


def _column(column: Raw, at: str) -> Iterator[FieldProblem]:
    if not column.get("name"):
        yield required(f"{at}.name")
    kind = column.get("type") or ""
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield required(f"{at}.type", types)
    elif kind not in _COLUMN_TYPES:
        yield invalid(f"{at}.type", kind, types)
    form = column.get("format") or ""
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    path = column.get("jsonPath") or ""
    if not path:
        yield required(f"{at}.JSONPath")
    elif not path.startswith("."):
        yield invalid(f"{at}.JSONPath", path, _NO_PATH)
    else:
        # kube-apiserver stores a path that it cannot read and leaves out this column and all that
        # follow, without a word.
        try:
            parse_json_path(path)
        except JsonPathError as error:
            yield invalid(f"{at}.JSONPath", path, f"is an invalid path: {error}")


def _conversion(conversion: Raw) -> Iterator[FieldProblem]:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        webhook = get(conversion, "webhook", {})
        yield from _client_config(webhook.get("clientConfig"))
        yield from _review_versions(get(webhook, "conversionReviewVersions", []))


def _client_config(config: Raw | None) -> Iterator[FieldProblem]:
    at = "spec.conversion.webhookClientConfig"
    if config is None:
        yield required(at, "required when strategy is set to Webhook")
        return
    yield from client_config_problems(at, config)


def _review_versions(versions: list[str]) -> Iterator[FieldProblem]:
    at = "spec.conversion.conversionReviewVersions"
    if not versions:
        yield required(at)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{at}[{index}]", version, "duplicate version")
        else:
            yield from (invalid(f"{at}[{index}]", version, told) for told in word_problems(version))
    if not set(versions) & {"v1", "v1beta1"}:
        yield invalid(at, versions, "must include at least one of v1, v1beta1")


def _stored_versions(definition: Raw) -> Iterator[FieldProblem]:
    at = "status.storedVersions"
    stored = _of(definition, "status", "storedVersions") or None
    if not stored:
        yield invalid(at, None, "must have at least one stored version")
        return
    versions = _of(definition, "spec", "versions") or ()
    known = {version.get("name") for version in versions}
    left = set(stored)
    for version in versions:
        name = version.get("name")
        if version.get("storage") and name not in left:
            # Also of a version that is there twice: its name is used up.
            yield invalid(at, stored, f"must have the storage version {name}")
        left.discard(name)
    for index, name in enumerate(stored):
        if name not in known:
            detail = f"missing from spec.versions; {name} was previously a storage version, and "
            detail += "must remain in spec.versions until a storage migration ensures no data "
            detail += f"remains persisted in {name} and removes {name} from status.storedVersions"
            yield invalid(f"{at}[{index}]", name, detail)


def _approval(definition: Raw) -> Iterator[FieldProblem]:
    group = _of(definition, "spec", "group")
    is_protected = group in ("k8s.io", "kubernetes.io") or group.endswith(
        (".k8s.io", ".kubernetes.io")
    )
    given = _of(definition, "metadata", "annotations") or {}
    if is_protected and not given.get(_APPROVAL):
        yield required(f"metadata.annotations[{_APPROVAL}]", _APPROVAL_NEEDED)


_FIELDS_MAX = 8
_TYPES = ("boolean", "integer", "string")
_NO_TYPE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)
_NO_FIELD = "does not refer to a valid field"
_DELIMITER = re.compile(r"[.\[\]]")
_QUOTE_END = re.compile(r"(?<!\\)'")


def selectable_field_problems(
    entries: Sequence[Raw], schema: Mapping[str, Any], at: str
) -> Iterator[FieldProblem]:
    """Yield what is wrong with `selectableFields` of a version that has this schema."""
    known: set[tuple[str, ...]] = set()
    for index, entry in enumerate(entries):
        where = f"{at}[{index}].jsonPath"
        text = entry.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        try:
            path, field = _field_at(text, schema)
        except JsonPathError as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if path[:1] == ("metadata",):
            yield invalid(where, text, "must not point to fields in metadata")
        if not isinstance(field, dict) or field.get("type") not in _TYPES:
            yield invalid(where, text, _NO_TYPE)
        if path in known:
            yield duplicate(where, text)
        known.add(path)
    if len(known) > _FIELDS_MAX:
        yield too_many(at, len(known), _FIELDS_MAX)


def _field_at(text: str, schema: Any) -> tuple[tuple[str, ...], Any]:
    """Return the names in a path of fields, and the schema of the last one."""
    path: list[str] = []
    tokens = _tokens(text)
    for token in tokens:
        if token == "[":
            raise JsonPathError("array notation is not allowed")
        if token != ".":
            raise JsonPathError(f"expected [ or . but got: {token}")
        name = next(tokens, None)
        if name is None:
            raise JsonPathError("unexpected end of JSON path")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        others = schema.get("additionalProperties") if isinstance(schema, dict) else None
        if (properties and name not in properties) or not (properties or others):
            raise JsonPathError(_NO_FIELD)
        schema = properties[name] if properties else others
        path.append(name)
    return tuple(path), schema


def _tokens(text: str) -> Iterator[str]:
    """Yield dots, brackets, and what stands between them; quotes keep a text together."""
    position = 0
    while position < len(text):
        if text[position] == "'":
            match = _QUOTE_END.search(text, position + 1)
            end = match.end() if match else len(text)
        else:
            match = _DELIMITER.search(text, position)
            end = match.start() if match else len(text)
            end = end if end > position else position + 1
        yield text[position:end]
        position = end
