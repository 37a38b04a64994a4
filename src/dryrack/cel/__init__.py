"""CEL with the DRA device environment: parse, check, estimate, evaluate."""

from dryrack.cel.checking.checker import Checked
from dryrack.cel.checking.environment import Environment
from dryrack.cel.derived import DerivedTable, compile_derived, derive
from dryrack.cel.device import Device
from dryrack.cel.evaluation.interpreter import CANCELLED
from dryrack.cel.evaluation.program import (
    CompileError,
    EvaluationError,
    Program,
    compile_expression,
)
from dryrack.cel.evaluation.values import Err, Optional
from dryrack.cel.functions.conversions import string_to_duration, string_to_timestamp
from dryrack.cel.functions.go_numbers import parse_duration
from dryrack.cel.functions.strings import compile_pattern
from dryrack.cel.functions.urls import UrlError, split_url
from dryrack.cel.parsing.lexer import KEYWORDS_AND_RESERVED_WORDS
from dryrack.cel.parsing.parser import parse
from dryrack.cel.parsing.source import Issues

__all__ = [
    "CANCELLED",
    "KEYWORDS_AND_RESERVED_WORDS",
    "Checked",
    "CompileError",
    "DerivedTable",
    "Device",
    "Environment",
    "Err",
    "EvaluationError",
    "Issues",
    "Optional",
    "Program",
    "UrlError",
    "compile_derived",
    "compile_expression",
    "compile_pattern",
    "derive",
    "parse",
    "parse_duration",
    "split_url",
    "string_to_duration",
    "string_to_timestamp",
]
