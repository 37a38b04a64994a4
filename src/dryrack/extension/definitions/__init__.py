"""Definitions of custom kinds: their schemas, the rules in these, and values by them."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.extension.definitions.definition_rules import (
        DefinitionRules,
        problems_of_definition,
        schema_of,
        word_problems,
    )
    from dryrack.extension.definitions.embedded import embedded_error, embedded_problems
    from dryrack.extension.definitions.filling import (
        mentions_key,
        prune,
        whole_numbers,
        with_defaults,
    )
    from dryrack.extension.definitions.jsonpath import JsonPath, JsonPathError, parse_json_path
    from dryrack.extension.definitions.lists import duplicates
    from dryrack.extension.definitions.reading import DefinitionError
    from dryrack.extension.definitions.rule_types import value_of
    from dryrack.extension.definitions.rules import Rule, Ruled, compile_rules
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
            "definition_rules": "DefinitionRules problems_of_definition schema_of word_problems",
            "embedded": "embedded_error embedded_problems",
            "filling": "mentions_key prune whole_numbers with_defaults",
            "jsonpath": "JsonPath JsonPathError parse_json_path",
            "lists": "duplicates",
            "reading": "DefinitionError",
            "rule_types": "value_of",
            "rules": "Rule Ruled compile_rules",
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
    "compile_rules",
    "duplicates",
    "embedded_error",
    "embedded_problems",
    "item_key",
    "items_by_key",
    "mentions_key",
    "parse_json_path",
    "problems_of_definition",
    "prune",
    "schema_of",
    "value_of",
    "value_problems",
    "whole_numbers",
    "with_defaults",
    "word_problems",
]
