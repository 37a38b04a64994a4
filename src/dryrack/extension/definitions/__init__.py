"""Definitions of custom kinds: their schemas, the rules in these, and values by them."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.extension.definitions.definition_rules import (
        DefinitionRules,
        problems_of_definition,
        schema_of,
    )
    from dryrack.extension.definitions.embedded import nameless, unreadable
    from dryrack.extension.definitions.filling import (
        mentions_key,
        pruned,
        whole_numbers,
        with_defaults,
    )
    from dryrack.extension.definitions.jsonpath import JsonPath, JsonPathError, parse_json_path
    from dryrack.extension.definitions.lists import duplicates
    from dryrack.extension.definitions.reading import DefinitionError
    from dryrack.extension.definitions.rule_types import value_of
    from dryrack.extension.definitions.rules import Rule, Ruled, compiled_rules
    from dryrack.extension.definitions.values import (
        NO_OLD,
        NOWHERE,
        item_key,
        items_by_key,
        value_problems,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "definition_rules": "DefinitionRules problems_of_definition schema_of",
            "embedded": "nameless unreadable",
            "filling": "mentions_key pruned whole_numbers with_defaults",
            "jsonpath": "JsonPath JsonPathError parse_json_path",
            "lists": "duplicates",
            "reading": "DefinitionError",
            "rule_types": "value_of",
            "rules": "Rule Ruled compiled_rules",
            "values": "NOWHERE NO_OLD item_key items_by_key value_problems",
        },
    )

__all__ = [
    "NOWHERE",
    "NO_OLD",
    "DefinitionError",
    "DefinitionRules",
    "JsonPath",
    "JsonPathError",
    "Rule",
    "Ruled",
    "compiled_rules",
    "duplicates",
    "item_key",
    "items_by_key",
    "mentions_key",
    "nameless",
    "parse_json_path",
    "problems_of_definition",
    "pruned",
    "schema_of",
    "unreadable",
    "value_of",
    "value_problems",
    "whole_numbers",
    "with_defaults",
]
