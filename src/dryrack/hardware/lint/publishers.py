"""
DR8xx: configuration from which somebody publishes slices that cannot work.

The loose dialects let people write what the API does not take, or what makes a pool that is
never complete. A publisher may put some of it right; the next one will not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dryrack.hardware import names
from dryrack.hardware.lint.blueprints import blueprints
from dryrack.hardware.lint.finding import Problem, Severity
from dryrack.hardware.lint.registry import Registry, broken
from dryrack.hardware.names import amount
from dryrack.kinds.validation.names import driver_name, qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.hardware.lint.blueprints import Blueprint
    from dryrack.hardware.lint.finding import Path
    from dryrack.hardware.lint.world import World

RULES = Registry()

_TYPES = ("string", "int", "bool", "version", "strings", "ints", "bools", "versions")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){1,2}")

_SOUND = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: dra-kwok-configmap
  namespace: karpenter
data:
  config.yaml: |
    driver: gpu.example.com
    mappings:
    - name: t4
      nodeSelectorTerms:
      - matchExpressions:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge]}
      resourceSlice:
        driver: gpu.example.com
        devices:
        - name: t4-0
          attributes:
            model: {string: t4}
            compute_capability: {version: 7.5.0}
          capacity:
            memory: {value: 16Gi}
"""


def _problem(blueprint: Blueprint, path: Path, what: str, fix: str) -> Problem:
    return Problem(blueprint.entry, path, what, fix, line=blueprint.line(path))


@RULES.rule(
    "DR801",
    "publisher-driver-name",
    Severity.WARNING,
    summary="A publisher is configured with a driver name that the API does not allow.",
    example=broken(_SOUND, ("        driver: gpu.example.com", "        driver: example.com/gpu")),
)
def publisher_driver_name(world: World) -> Iterator[Problem]:
    """The API server refuses every slice of such a driver. A driver name has no slash."""
    for blueprint in blueprints(world):
        for path, name in blueprint.drivers():
            if any(driver_name("driver", name)):
                yield _problem(
                    blueprint,
                    path,
                    f"driver name {name!r} is not allowed by the API",
                    f"write {names.driver_name(name)!r}",
                )


@RULES.rule(
    "DR802",
    "publisher-attribute-name",
    Severity.WARNING,
    summary="A publisher is configured with an attribute name that the API does not allow.",
    example=broken(_SOUND, ("compute_capability", "compute-capability")),
)
def publisher_attribute_name(world: World) -> Iterator[Problem]:
    """The API server refuses the slice. Names of attributes are identifiers as in C."""
    for blueprint in blueprints(world):
        for path, name, _ in blueprint.attributes():
            if any(qualified_name("attributes", name)):
                yield _problem(
                    blueprint,
                    path,
                    f"attribute name {name!r} is not allowed by the API",
                    f"write {names.identifier(name)!r}",
                )


def _written(value: object) -> tuple[str, Any] | None:
    """Type and value of an attribute, however it is spelt; None if it is not one."""
    if isinstance(value, Mapping):
        ((spelt, inner), *more) = value.items() or [("", None)]
        kind = str(spelt).lower()
        return (kind, inner) if kind in _TYPES and not more else None
    if isinstance(value, bool):
        return "bool", value
    return ("int", value) if isinstance(value, int) else ("string", value)


def _is_plain(value: object) -> bool:
    """Whether the attribute is written as the API has it."""
    return isinstance(value, Mapping) and all(key in _TYPES for key in value)


@RULES.rule(
    "DR803",
    "publisher-attribute-form",
    Severity.WARNING,
    summary="An attribute is not written as the API has it.",
    example=broken(_SOUND, ("{string: t4}", "{String: t4}")),
)
def publisher_attribute_form(world: World) -> Iterator[Problem]:
    """
    In the API an attribute is an object with one field, `string`, `int`, `bool` or `version`,
    in lower case. Some publishers also take a bare value or another spelling, and others
    publish an attribute without a value, which the API server refuses.
    """
    for blueprint in blueprints(world):
        for path, name, value in blueprint.attributes():
            if _is_plain(value):
                continue
            written = _written(value)
            yield _problem(
                blueprint,
                path,
                f"attribute {name!r} is not written as the API has it",
                f"write {{{written[0]}: {written[1]}}}"
                if written
                else "give it one of string, int, bool and version",
            )


@RULES.rule(
    "DR804",
    "publisher-slice-count",
    Severity.WARNING,
    summary="A mapping states more slices than the one it makes.",
    example=broken(
        _SOUND,
        (
            "        driver: gpu.example.com\n",
            "        driver: gpu.example.com\n        pool: {resourceSliceCount: 3}\n",
        ),
    ),
)
def publisher_slice_count(world: World) -> Iterator[Problem]:
    """A publisher makes one slice per mapping and node, so the pool would never be complete."""
    for blueprint in blueprints(world):
        count = blueprint.pool.get("resourceSliceCount", 1)
        if count != 1:
            yield _problem(
                blueprint,
                (*blueprint.path, "pool", "resourceSliceCount"),
                f"the pool is said to have {count} slices, but one is made from this",
                "set it to 1, or leave it out",
            )


@RULES.rule(
    "DR805",
    "publisher-pool-name",
    Severity.WARNING,
    summary="One pool name is configured for all nodes that a mapping selects.",
    example=broken(
        _SOUND,
        (
            "        driver: gpu.example.com\n",
            "        driver: gpu.example.com\n        pool: {name: t4-pool}\n",
        ),
    ),
)
def publisher_pool_name(world: World) -> Iterator[Problem]:
    """
    Nodes that share a pool name share its devices: with a second node the pool has a slice
    too many, and no device of either node is allocated.
    """
    for blueprint in blueprints(world):
        name = blueprint.pool.get("name")
        if name and blueprint.selects_nodes and not blueprint.spec.get("allNodes"):
            yield _problem(
                blueprint,
                (*blueprint.path, "pool", "name"),
                f"every selected node would have a pool of the one name {name!r}",
                "leave the name out, so that each node's pool is named after the node",
            )


@RULES.rule(
    "DR806",
    "publisher-all-nodes",
    Severity.WARNING,
    summary="A slice for all nodes is configured to be published once per selected node.",
    example=broken(
        _SOUND,
        (
            "        driver: gpu.example.com\n",
            "        driver: gpu.example.com\n        allNodes: true\n",
        ),
    ),
)
def publisher_all_nodes(world: World) -> Iterator[Problem]:
    """
    A publisher that sets `nodeName` beside `allNodes` is refused by the API server, and one
    that does not publishes the same devices once per node.
    """
    for blueprint in blueprints(world):
        if blueprint.spec.get("allNodes") and blueprint.selects_nodes:
            yield _problem(
                blueprint,
                (*blueprint.path, "allNodes"),
                "the slice is for all nodes and also for each selected node",
                "remove allNodes, or publish the slice once, without selecting nodes",
            )


@RULES.rule(
    "DR807",
    "publisher-amount-as-string",
    Severity.WARNING,
    summary="An amount is configured as an attribute.",
    example=broken(
        _SOUND,
        (
            "          capacity:\n            memory: {value: 16Gi}",
            "            memory: {string: 16Gi}",
        ),
    ),
)
def publisher_amount_as_string(world: World) -> Iterator[Problem]:
    """Text cannot be compared as an amount; amounts belong in `capacity`."""
    for blueprint in blueprints(world):
        for path, name, value in blueprint.attributes():
            written = _written(value)
            meant = amount(written[1]) if written and isinstance(written[1], str) else None
            if meant is not None:
                yield _problem(
                    blueprint,
                    path,
                    f"attribute {name!r} is an amount, which cannot be compared as text",
                    f"move it to capacity: {name}: {{value: {meant}}}",
                )
