"""The bill of materials (SBOM) of an image, in the format CycloneDX."""

from __future__ import annotations

import json
import platform
import re
from importlib.metadata import distributions
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path
    from typing import Any

_FIELD = re.compile(r"^(Package|Version|Architecture): (.+)$", re.MULTILINE)


def bill_of_materials(
    folders: Sequence[Path], status: Path | None = None, names: Collection[str] | None = None
) -> str:
    """
    Return the SBOM of the distributions in folders, and of the Debian packages in a status folder.

    `names` limits the distributions. The text has no time and no serial number, so equal images
    have equal bills.
    """
    paths = [str(each) for each in folders]
    components = [
        _component(each.name, each.version, f"pkg:pypi/{each.name.lower()}@{each.version}")
        for each in distributions(path=paths)
        if names is None or each.name in names
    ]
    components.append(_component("python", platform.python_version(), "pkg:generic/python"))
    components += _debian_components(status) if status is not None else ()
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": sorted(components, key=lambda each: str(each["purl"])),
    }
    return json.dumps(document, indent=1) + "\n"


def _debian_components(status: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(status.iterdir()) if status.is_dir() else ():
        field = dict(_FIELD.findall(path.read_text()))
        url = f"pkg:deb/debian/{field['Package']}@{field['Version']}?arch={field['Architecture']}"
        yield _component(field["Package"], field["Version"], url)


def _component(name: str, version: str, url: str) -> dict[str, Any]:
    return {"type": "library", "name": name, "version": version, "purl": url}
