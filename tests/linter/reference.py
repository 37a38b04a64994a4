"""
Write the reference page of all lint codes from the rules.

`python -m tests.linter.reference > docs/reference/lint.md` writes the page; a test compares it.
The page shows each example as the change that fixes it.
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

`dryrack lint FILE…` checks Kubernetes YAML and JSON files.
It reports what the API server rejects, and what the API server accepts but the scheduler \
cannot schedule.
A code never changes its meaning.
Errors set the exit status to 1; warnings and infos do not.

- **error**: the API server rejects the object, or the object cannot work in any cluster.
- **warning**: the object cannot work with the objects in the files, or it probably does not do \
what you intend.
- **info**: check whether this is intended.

The first digit is the topic: DR0xx reading files, DR1xx validation by the API server, \
DR2xx pools, counters and nodes, DR3xx devices, DR4xx classes and selectors, DR5xx claims, \
DR6xx pods, DR7xx policy, DR8xx device configurations of publishers.
In the examples, `-` marks the lines with the finding and `+` the corrected lines.

| Code | Severity | Name | Description |
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
    bad = example.bad.splitlines()
    fixed = example.fixed.splitlines()
    matcher = difflib.SequenceMatcher(None, bad, fixed, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        start = group[0][1]
        yield f"# {_object(bad, group[0][1])}" if start else "# start of the file"
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
        return "start of the file"
    kind = lines[kinds[-1]].removeprefix("kind: ")
    name = next(line for line in lines[kinds[-1] :] if line.startswith("  name: "))
    return f"{kind} {name.removeprefix('  name: ')}"


if __name__ == "__main__":
    sys.stdout.write(page())
