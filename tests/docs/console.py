"""
Run the console blocks of a page.

A line that begins with `$ ` is a command. The lines below it, up to the next command, are what
it prints on standard output. `...` stands for any text within a line, and a line of `...` for
any lines. A command without such lines may print anything. kubectl and the commands that start
and change a cluster must succeed.

A block with a title, as in ```yaml title="pod.yaml"```, is a file: it exists when the commands
run, because a reader saves it. The commands run in order, in a folder that holds only these
files, with an empty home folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)
_ANY = re.escape("...")
# What other commands find, such as lint, is in their exit status. A page that shows an error of
# kubectl writes `2>&1`.
_MUST_SUCCEED = re.compile(r"(?!.* 2>&1$)(kubectl |dryrack (down|examples|fault|up)\b)")


@dataclass(frozen=True, slots=True)
class Example:
    """One command and what it must print; None where the page does not show it."""

    command: str
    output: str | None


def examples(page: Path) -> list[Example]:
    found = []
    for block in _BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Example(command, output or None))
    return found


def files(page: Path) -> dict[str, str]:
    """The files that the page shows, by name."""
    return dict(_FILE.findall(page.read_text()))


def needs_kubectl(page: Path) -> bool:
    return any(re.search(r"\bkubectl\b", example.command) for example in examples(page))


def fits(expected: str, printed: str) -> bool:
    pattern = "".join(
        "(?:.*\n)*" if line == "..." else re.escape(line).replace(_ANY, ".*") + "\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, printed) is not None


def environment(folder: Path, *programs: Path) -> dict[str, str]:
    """Return the environment of a new user: no cluster, no kubeconfig, an empty home."""
    home = folder / "home"
    home.mkdir()
    hidden = ("DRYRACK_HOME", "KUBECONFIG", "XDG_STATE_HOME")
    inherited = {key: value for key, value in os.environ.items() if key not in hidden}
    path = [str(Path(sys.executable).parent), *map(str, programs), os.environ["PATH"]]
    return {**inherited, "HOME": str(home), "PATH": ":".join(path), "NO_COLOR": "1"}


def follow(page: Path, folder: Path, *programs: Path) -> None:
    """Run every command of the page, and compare what it prints with what the page shows."""
    play(page, folder / "here", environment(folder, *programs))


def play(page: Path, folder: Path, variables: dict[str, str]) -> None:
    """Run the commands in an existing folder and environment; stop the clusters at the end."""
    here = folder
    here.mkdir(exist_ok=True)
    for name, text in files(page).items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    try:
        for example in examples(page):
            if example.command.startswith("cd "):
                here /= example.command.removeprefix("cd ")
                continue
            done = run(example.command, here, variables)

            assert "Traceback" not in done.stderr, example.command
            if _MUST_SUCCEED.match(example.command):
                assert done.returncode == 0, f"{example.command}\n{done.stdout}{done.stderr}"
            if example.output is not None:
                same = fits(example.output, done.stdout)
                assert same, f"{example.command}\n{done.stdout}{done.stderr}"
    finally:
        run("dryrack down --all", folder, variables)


def run(
    command: str, here: Path, variables: dict[str, str], *, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=here,
        env=variables,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
