"""The page's types, which are written in comments, hold."""

from __future__ import annotations

import subprocess

import pytest
from tests.dashboard.browser import requirements

from dryrack.dashboard.bundle import STATIC

pytestmark = pytest.mark.real

_STRICT = (
    *("--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "esnext"),
    *("--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "dom,dom.iterable,esnext"),
)


def test_typescript_finds_no_mistake_in_the_page() -> None:
    """In any module that it loads, by the strictest rules."""
    requirements.ensure()
    compiler = requirements.package(requirements.TYPESCRIPT) / "lib" / "tsc.js"

    done = subprocess.run(
        ["node", str(compiler), *_STRICT, "page.js"],
        cwd=STATIC,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == ""
    assert done.returncode == 0, done.stderr
