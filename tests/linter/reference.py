"""
The page about all codes, made from the rules themselves.

`python -m tests.linter.reference > docs/reference/lint.md` writes it; a test compares.
Each example is shown as the change that heals it.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING

from tests.linter.rule_examples import EXAMPLES

from dryrack.linter.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.linter.examples import Example

    from dryrack.linter.registry import Rule

_CONTEXT_LINES = 2

_HEAD = """\
# Lint codes

`dryrack lint FILE…` reads any mix of Kubernetes YAML and JSON and says what a cluster would \
refuse, and what it would accept and never schedule.
A code never changes its meaning.
Errors make the exit code 1; warnings and infos do not.

- **error**: a cluster refuses it, or it cannot work whatever else is in the cluster.
- **warning**: it cannot work with what is in the files, or it does something else than was \
probably meant.
- **info**: worth a look.

DR0xx is about reading files, DR1xx the API's own rules, DR2xx pools, counters and nodes, \
DR3xx devices, DR4xx classes and selectors, DR5xx claims, DR6xx pods, DR7xx policy, \
DR8xx the configuration of publishers of fake devices.
In the examples, `-` is what lint finds and `+` is what heals it.

| code | severity | name | what |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = "".join(_row(rule) for rule in RULES)
    sections = "\n".join(_section(rule) for rule in RULES)
    return f"{_HEAD}{rows}\n{sections}"


def _row(rule: Rule) -> str:
    anchor = f"{rule.code}-{rule.slug}".lower()
    return f"| [{rule.code}](#{anchor}) | {rule.severity.value} | {rule.slug} | {rule.summary} |\n"


def _section(rule: Rule) -> str:
    why = " ".join(rule.why.split()).replace(". ", ".\n").replace("? ", "?\n")
    change = "\n".join(_change(EXAMPLES[rule.code]))
    return f"## {rule.code} {rule.slug}\n\n{rule.summary}\n{why}\n\n```diff\n{change}\n```\n"


def _change(example: Example) -> Iterator[str]:
    """The difference in the manner of `diff -u`, each part headed by the object it is in."""
    bad, fixed = example.bad.splitlines(), example.fixed.splitlines()
    matcher = difflib.SequenceMatcher(None, bad, fixed, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        start = group[0][1]
        yield f"# {_object(bad, group[0][1])}" if start else "# the beginning of the file"
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                yield from (f"  {line}" for line in bad[low:high])
                continue
            yield from (f"- {line}" for line in bad[low:high])
            yield from (f"+ {line}" for line in fixed[new_low:new_high])


def _object(lines: list[str], index: int) -> str:
    """Kind and name of the object that line `index` is in."""
    kinds = [nth for nth, line in enumerate(lines[: index + 1]) if line.startswith("kind:")]
    if not kinds:
        return "the beginning of the file"
    kind = lines[kinds[-1]].removeprefix("kind: ")
    name = next(line for line in lines[kinds[-1] :] if line.startswith("  name: "))
    return f"{kind} {name.removeprefix('  name: ')}"


if __name__ == "__main__":
    sys.stdout.write(page())
