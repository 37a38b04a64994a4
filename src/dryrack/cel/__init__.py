"""CEL with the DRA device environment: parse, check, estimate, evaluate."""

from dryrack.cel.device import Device
from dryrack.cel.environment import Environment
from dryrack.cel.program import CompileError, EvaluationError, Program, compile_expression

__all__ = [
    "CompileError",
    "Device",
    "Environment",
    "EvaluationError",
    "Program",
    "compile_expression",
]
