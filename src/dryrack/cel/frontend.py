"""
Text to a checked expression: parse, check, validate.

Each step runs only if the one before it found nothing wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.checker import Checked, check
from dryrack.cel.depth import depth_of, raised_recursion_limit
from dryrack.cel.parser import parse
from dryrack.cel.source import Issues, report
from dryrack.cel.validators import validate

if TYPE_CHECKING:
    from dryrack.cel.environment import Environment


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
