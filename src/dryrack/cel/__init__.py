"""CEL with the DRA device environment: parse, check, estimate, evaluate."""

from dryrack.cel.checking.environment import Environment
from dryrack.cel.device import Device
from dryrack.cel.evaluation.program import (
    CompileError,
    EvaluationError,
    Program,
    compile_expression,
)

__all__ = [
    "CompileError",
    "Device",
    "Environment",
    "EvaluationError",
    "Program",
    "compile_expression",
]
