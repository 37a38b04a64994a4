"""The repository follows its rules, and each rule finds what it forbids."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest
from tests.tidy.rules import File, bare_participles, problems

ROOT = Path(__file__).parents[2]

# Each line is a cost for the next maintainer. A feature that needs more lines raises this limit.
SOURCE_LINES_MAX = 180_000
# Functions named by a participle, such as `told`, that are left from earlier.
PARTICIPLES_MAX = 170

LONG_FUNCTION = '"""Says."""\n\n\ndef step() -> None:\n' + "    print()\n" * 80
LONG_SIGNATURE = "def step(\n" + "".join(f"    a{n}: int,\n" for n in range(80)) + ") -> None:\n"
LONG_SIGNATURE += '    """Does."""\n    print()\n'
DOCUMENTED_FUNCTION = (
    '"""Says."""\n\n\ndef step() -> None:\n    """\n' + "    x\n" * 90 + '    """\n'
)


def tracked() -> list[PurePosixPath]:
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone has a list of tracked files")
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = (PurePosixPath(name) for name in listing.stdout.split("\0") if name)
    return sorted(path for path in paths if (ROOT / path).is_file())


def test_every_tracked_file_keeps_the_rules() -> None:
    """No tracked file breaks a rule."""
    violations: list[str] = []
    for path in tracked():
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        violations += problems(File(path, text))

    assert "\n".join(violations) == ""


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("src/dryrack/kinds/a.py", LONG_FUNCTION, "a.py:4: step has 81 lines"),
        ("src/dryrack/cli/a.py", f'"""Says."""\n{LONG_SIGNATURE}', "a.py:2: step has 83 lines"),
        ("src/dryrack/kinds/a.py", '"""Says."""\n' + "x = 1\n" * 900, "a.py:1: 901 lines"),
        ("src/dryrack/kinds/utils.py", '"""Says."""\n', "utils.py:1: the name does not"),
        ("src/dryrack/helpers/a.py", '"""Says."""\n', "a.py:1: the name does not"),
        ("src/dryrack/kinds/a.py", "x = 1\n", "a.py:1: no module docstring"),
        ("tests/test_a.py", '"""Says."""\n\ndef test_b() -> None: ...\n', "3: test_b has no"),
        ("src/dryrack/cel/a.py", '"""Says."""\ntime.time()\n', "a.py:2: time.time() in a package"),
        ("src/dryrack/cel/a.py", '"""Says."""\nuuid4()\n', "base.ports.Chance"),
        ("src/dryrack/cel/a.py", '"""Says."""\ndatetime.now()\n', "base.ports.Clock"),
        ("tests/a.py", '"""Says."""\ntime.sleep(1)\n', "a.py:2: sleeps; wait for a"),
        ("tests/a.py", '"""Says."""\nasyncio.sleep(0.1)\n', "a.py:2: sleeps; wait for a"),
        ("tests/a.py", '"""Says."""\nasyncio.sleep(pause)\n', "a.py:2: sleeps; wait for a"),
        ("tests/a.py", '"""Says."""\nsleep(0.1)\n', "a.py:2: sleeps; wait for a"),
        ("tests/a.py", '"""Says."""\nsleep(SystemClock(), 1)\n', "a.py:2: sleeps; wait for"),
        ("src/a.py", '"""Whether it is."""\n', "a.py:1: the docstring begins with 'Whether'"),
        ("src/a.py", '"""A."""\ndef a() -> None:\n    """Of b."""\n', "a.py:3: the docstring"),
        ("src/dryrack/a/b.py", '"""A."""\na.get("b") or {}\n', "b.py:2: a.get('b') or {}; use"),
        ("docs/a.md", "# One\n\nIn /" + "work/main.\n", "a.md:3: a path of one machine"),
        ("a.txt", "see .." + "/shared/x\n", "a.txt:1: a path of one machine"),
        ("go.env", "GOPROXY=https://proxy." + "golang.org\n", "go.env:1: names a package reg"),
        ("docs/a.md", "# One\n\n# Two\n", "a.md:1: 2 titles"),
        ("docs/a.md", "Text.\n\n# One\n", "a.md:1: 1 titles"),
    ],
)
def test_a_planted_violation_is_found(path: str, text: str, complaint: str) -> None:
    """Every rule finds what it forbids, and names the place and the replacement."""
    [problem] = problems(File(PurePosixPath(path), text))

    assert complaint in problem


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/dryrack/cli/a.py", '"""Faces may look at the clock."""\ntime.time()\n'),
        ("tests/realcluster/readiness.py", '"""Waits."""\ntime.sleep(1)\n'),
        ("tests/bench/a.py", '"""Measures."""\nasyncio.sleep(1)\n'),
        ("tests/a.py", '"""Lets others run."""\nasyncio.sleep(0)\n'),
        ("tests/a.py", '"""By a virtual clock."""\nsleep(clock, 60)\n'),
        ("src/dryrack/kinds/a.py", DOCUMENTED_FUNCTION),
        ("src/dryrack/cli/a.py", f'"""Says."""\n@app.command()\n{LONG_SIGNATURE}'),
        ("src/dryrack/a/b.py", '"""A."""\n\n\ndef a(b=None) -> None:\n    c = b or {}\n'),
        ("src/dryrack/a/b.py", '"""What-if analysis."""\n'),
        ("src/dryrack/__init__.py", ""),
        ("docs/a.md", "# One\n\n```sh\n# a comment\n```\n"),
        ("a.txt", "a network/" + "work/load and the frame" + "work/ of it\n"),
    ],
)
def test_allowed_text_is_not_found(path: str, text: str) -> None:
    """No rule reports text that is allowed."""
    assert list(problems(File(PurePosixPath(path), text))) == []


def test_functions_are_named_by_verbs() -> None:
    """No new function in `src` has a participle as its name; the limit only goes down."""
    names = [
        f"{path}:{each}"
        for path in tracked()
        if path.parts[0] == "src" and path.suffix == ".py"
        for each in bare_participles(File(path, (ROOT / path).read_text()))
    ]

    assert len(names) <= PARTICIPLES_MAX, "\n".join(names)


@pytest.mark.parametrize("name", ["told", "_completed", "found"])
def test_a_participle_is_found(name: str) -> None:
    """A bare participle is no name for a function; a verb and a noun are."""
    text = f'"""A."""\n\n\ndef {name}() -> None: ...\n\n\ndef find_nodes() -> None: ...\n'

    [problem] = bare_participles(File(PurePosixPath("src/a.py"), text))

    assert problem.startswith(f"4: {name} is a participle")


def test_source_lines_do_not_grow_unnoticed() -> None:
    """A change that adds lines to `src` raises the limit, and gives the reason."""
    lines = sum(path.read_text().count("\n") for path in (ROOT / "src").rglob("*.py"))

    assert lines <= SOURCE_LINES_MAX


def test_no_folder_has_too_many_modules() -> None:
    """A reader finds a module in a folder of at most 24."""
    folders = {path.parent for path in (ROOT / "src" / "dryrack").rglob("*.py")}
    counts = {str(each.relative_to(ROOT)): len(list(each.glob("*.py"))) for each in folders}

    assert {name: count for name, count in counts.items() if count > 24} == {}
