"""
The files of the page as the browser gets them: one script, one style sheet, and the document.

The scripts in `static` are ES modules that a person reads and that browsers run as they are. A page
of fifty modules needs fifty requests, so the server joins them when it starts. Each module becomes
a function that returns its exports, after the modules that it imports. Of two modules that import
each other, the first one gets functions that call those of the second one.

The addresses of the joined files contain a hash of their content, so that browsers can keep them.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# The name of a file contains its content's hash, so that a browser never asks for it again.
_KEPT = "private, max-age=31536000, immutable"
_ASKED_FOR = "no-cache"

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that the server sends."""

    content_type: str
    body: bytes
    packed: bytes
    caching: str = _KEPT


@cache
def assets() -> dict[str, Asset]:
    """Return the files of the page by their path; the document is at ""."""
    document = (STATIC / "index.html").read_text()
    styles = re.findall(r'<link rel="stylesheet" href="static/([^"]+)">\n', document)
    style = "".join((STATIC / each).read_text() for each in styles)
    script = join_modules(STATIC / "page.js")
    found: dict[str, Asset] = {}
    script_name = _add(found, "page.js", script)
    style_name = _add(found, "page.css", style)
    start = (STATIC / "start.js").read_text().replace("./page.js", f"./{script_name}")
    start_name = _add(found, "start.js", start)
    for each in styles[1:]:
        document = document.replace(f'<link rel="stylesheet" href="static/{each}">\n', "")
    for before, after in ((styles[0], style_name), ("page.js", script_name)):
        document = document.replace(f'"static/{before}"', f'"static/{after}"')
    document = document.replace('"static/start.js"', f'"static/{start_name}"')
    found[""] = _asset(".html", document, _ASKED_FOR)
    found["static/icon.svg"] = _asset(".svg", (STATIC / "icon.svg").read_text(), _ASKED_FOR)
    return found


def _add(found: dict[str, Asset], name: str, text: str) -> str:
    """Add a file under a name with the hash of its content; return the name."""
    stem, _, suffix = name.partition(".")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    hashed = f"{stem}.{digest}.{suffix}"
    found[f"static/{hashed}"] = _asset(f".{suffix}", text)
    return hashed


def _asset(suffix: str, text: str, caching: str = _KEPT) -> Asset:
    body = text.encode()
    return Asset(_TYPES[suffix], body, gzip.compress(body, 9, mtime=0), caching)


def join_modules(entry: Path) -> str:
    """Return a script and all modules that it imports as one script."""
    modules = _Modules()
    modules.add(entry)
    return "\n".join(modules.texts)


@dataclass(slots=True)
class _Modules:
    """Modules as functions, each after those that it imports."""

    texts: list[str] = field(default_factory=list)
    names: dict[Path, str] = field(default_factory=dict)
    # The modules whose imports are being added.
    waiting: list[Path] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Add a module after its imports."""
        self.names[path] = name = f"$module{len(self.names)}"
        self.waiting.append(path)
        text = path.read_text()
        lines = []
        for names, address in _IMPORT.findall(text):
            parts = [each.split() for each in names.split(",") if each.strip()]
            lines += self._imports((path.parent / address).resolve(), parts)
        text = _IMPORT.sub("", text)
        exports = ", ".join(_EXPORT.findall(text))
        text = _EXPORT.sub("", text)
        unknown = _OTHER.search(text)
        assert unknown is None, f"{path.name}: the server cannot join {unknown and unknown[0]!r}"
        self.waiting.pop()
        head = [f"// {path.relative_to(STATIC)}", f"const {name} = (() => {{", *lines]
        self.texts += [*head, text, f"return {{ {exports} }};", "})();"]

    def _imports(self, path: Path, parts: list[list[str]]) -> list[str]:
        """Return the statements for `import`; a part is [name] or [name, "as", other]."""
        if path not in self.names:
            self.add(path)
        source = self.names[path]
        if path not in self.waiting:
            return [f"const {{ {', '.join(': '.join(each[::2]) for each in parts)} }} = {source};"]
        # The module comes later.
        text = path.read_text()
        for name, *_ in parts:
            assert re.search(rf"^export (?:async )?function {name}\b", text, re.MULTILINE), (
                f"{self.waiting[-1].name} and {path.name} import each other: "
                f"{name} must be a function"
            )
        return [
            f"const {each[-1]} = (...values) => {source}.{each[0]}(...values);" for each in parts
        ]
