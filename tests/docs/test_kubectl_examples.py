"""The documents are true where they use kubectl: their console blocks are run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.console import follow, needs_kubectl
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
# tests/docs/test_newcomer.py runs the README.
CONSOLES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if needs_kubectl(page)]


@pytest.mark.parametrize("page", CONSOLES, ids=lambda page: page.stem)
def test_consoles_with_kubectl_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Every command of the page, one after the other, in an empty folder."""
    kubectl = programs.kubernetes("kubectl", RELEASE).parent

    follow(page, tmp_path, kubectl)
