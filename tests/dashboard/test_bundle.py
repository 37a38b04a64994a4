"""The page is one script and one style sheet, whose addresses change with their content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.dashboard import bundle
from dryrack.dashboard.bundle import STATIC, assets, join_modules

if TYPE_CHECKING:
    from pathlib import Path


def test_every_module_and_style_sheet_is_in_the_bundle() -> None:
    """Each script is in the joined script once, and each style sheet in the joined style sheet."""
    script = join_modules(STATIC / "page.js")
    scripts = {str(each.relative_to(STATIC)) for each in STATIC.rglob("*.js")} - {"start.js"}
    style = next(each.body.decode() for path, each in assets().items() if path.endswith(".css"))

    assert sorted(re.findall(r"^// (\S+\.js)$", script, re.MULTILINE)) == sorted(scripts)
    assert all(each.read_text() in style for each in STATIC.glob("*.css"))


def test_a_module_comes_after_its_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports keep their names, and an import under another name gets it."""
    monkeypatch.setattr(bundle, "STATIC", tmp_path)
    (tmp_path / "a.js").write_text('import {\n  one as two, f,\n} from "./b.js";\nf(two);\n')
    (tmp_path / "b.js").write_text("export const one = 1;\nexport function f() {}\n")

    assert join_modules(tmp_path / "a.js").split("\n") == [
        *("// b.js", "const $module1 = (() => {", "const one = 1;", "function f() {}", ""),
        *("return { one, f };", "})();"),
        *("// a.js", "const $module0 = (() => {", "const { one: two, f } = $module1;"),
        *("f(two);", "", "return {  };", "})();"),
    ]


@pytest.mark.parametrize("text", ['import "./a.js";', "export default 1;", "export { a };"])
def test_what_cannot_be_joined_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other forms of import and export stop the server instead of breaking the page."""
    monkeypatch.setattr(bundle, "STATIC", tmp_path)
    (tmp_path / "a.js").write_text(f"{text}\n")

    with pytest.raises(AssertionError, match="cannot join"):
        join_modules(tmp_path / "a.js")


def test_modules_that_import_each_other_share_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one calls functions of the second one; a constant would have no value yet."""
    monkeypatch.setattr(bundle, "STATIC", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport function a() {}\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')

    assert "const a = (...values) => $module0.a(...values);" in join_modules(tmp_path / "a.js")
    with pytest.raises(AssertionError, match="b must be a function"):
        join_modules(tmp_path / "b.js")


def test_a_browser_keeps_the_files_and_asks_for_the_document() -> None:
    """The document names files with the hash of their content; those are kept for a year."""

    async def story(page: Visit) -> None:
        async with page.http.get("/", headers=BEARER) as response:
            assert response.headers["Cache-Control"] == "no-cache"
            document = await response.text()
        paths = re.findall(r'(?:src|href)="(static/[^"]+)"', document)
        assert sorted(path.split(".")[-1] for path in paths) == ["css", "js", "js", "svg", "svg"]
        for path in paths:
            async with page.http.get(f"/{path}", headers=BEARER) as response:
                assert response.status == 200
                assert response.headers["Content-Encoding"] == "gzip"
                caching = response.headers["Cache-Control"]
                assert ("immutable" in caching) == bool(re.search(r"\.[0-9a-f]{16}\.", path))

    visit(story)
