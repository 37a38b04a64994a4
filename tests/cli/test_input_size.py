"""Large inputs: everything in them is read, or an error names the limit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.cli import files
from dryrack.cli.files import UsageError, read_source, read_sources
from dryrack.kinds import documents
from dryrack.scenario import ScenarioError, load_scenario, reading

from .command import dryrack

if TYPE_CHECKING:
    from pathlib import Path

# More than the 64 MiB after which input was once cut.
_BYTES = 70 * 1024 * 1024


def _config_map(name: str, size: int = 0) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": "y" * size}}


@pytest.mark.parametrize("command", ["lint", "allocate"])
def test_the_last_object_of_a_large_list_is_read(tmp_path: Path, command: str) -> None:
    """A dump of more than 64 MiB is read to its end: the mistake in its last object is reported."""
    items = [_config_map(f"m{each}", 1_000_000) for each in range(_BYTES // 1_000_000 + 1)]
    last = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "UP"}}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, last]}))
    done = dryrack(command, "-f", path)
    assert done.returncode == 1
    assert "UP" in done.stdout + done.stderr


def test_the_last_document_of_a_large_stream_is_read(tmp_path: Path) -> None:
    """All documents of a large YAML stream are read."""
    path = tmp_path / "stream.yaml"
    padding = f"# {'x' * 1000}\n" * (_BYTES // 1000)
    path.write_text(
        f"{json.dumps(_config_map('a'))}\n---\n{padding}{json.dumps(_config_map('UP'))}"
    )
    done = dryrack("lint", "-f", path)
    assert done.returncode == 1
    assert "UP" in done.stdout


def test_an_input_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the limit; nothing is cut."""
    monkeypatch.setattr(files, "FILE_BYTES_MAX", 1024 * 1024)
    path = tmp_path / "large.yaml"
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    for read in (read_source, lambda name: read_sources([name])):
        with pytest.raises(UsageError, match=r"large\.yaml: larger than 1 MiB, the limit"):
            read(str(path))
    path.write_bytes(b"#" * (1024 * 1024))
    assert len(read_source(str(path)).content) == 1024 * 1024


def test_a_scenario_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scenario file that is too large is a problem of its own, not half a scenario."""
    for module in (reading, documents):
        monkeypatch.setattr(module, "FILE_BYTES_MAX", 100)
    path = tmp_path / "scenario.yaml"
    path.write_text("apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\n" + "#" * 100)
    with pytest.raises(ScenarioError, match="larger than 100 bytes"):
        load_scenario(path)
