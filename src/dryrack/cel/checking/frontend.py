"""
Text to a checked expression: parse, check, validate.

Each step runs only if the one before it found nothing wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.checking.checker import Checked, check
from dryrack.cel.checking.validators import validate
from dryrack.cel.parsing.depth import depth_of, raised_recursion_limit
from dryrack.cel.parsing.parser import parse
from dryrack.cel.parsing.source import Issues, report

if TYPE_CHECKING:
    from dryrack.cel.checking.environment import Environment


def compile_text(text: str, env: Environment) -> Checked | Issues:
    """Compile an expression, or say all that is wrong with it."""
    parsed = parse(text)
    if isinstance(parsed, Issues):
        return parsed
    # The tree is walked without nesting, but types nest as deeply as their expressions.
    with raised_recursion_limit(depth_of(parsed)):
        checked = check(parsed, env)
        if isinstance(checked, list):
            return report(text, checked)
        problems = validate(checked)
    return report(text, problems) if problems else checked
