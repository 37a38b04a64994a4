"""
Lint: what a cluster would refuse, or accept and never schedule.

`lint` is a function from the content of files to findings, in the order of file, line and
code, and the same under any order of hashing. It reads no file itself.
"""

from dryrack.linter.engine import lint
from dryrack.linter.finding import Finding, Severity
from dryrack.linter.object_rules import object_problems
from dryrack.linter.rules import RULES

__all__ = ["RULES", "Finding", "Severity", "lint", "object_problems"]
