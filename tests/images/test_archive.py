"""The archive of an image is consistent, and the same for the same files."""

from __future__ import annotations

import hashlib
import json
import tarfile
from typing import TYPE_CHECKING, Any

from dryrack.cli.images.archive import (
    ImageConfig,
    Layer,
    LayerWriter,
    image_names,
    write_archive,
)
from dryrack.cli.images.materials import bill_of_materials

if TYPE_CHECKING:
    from pathlib import Path

NAME = "localhost/dryrack:1"
CONFIG = ImageConfig(architecture="amd64", entrypoint=("/bin/a",), environment={"A": "b=c"})


def layer(directory: Path, name: str = "layer") -> Layer:
    writer = LayerWriter(directory / f"{name}.tar")
    writer.add_bytes("opt/a/b", b"content", mode=0o755)
    writer.add_bytes("opt/a/b", b"the second is left out")
    writer.add_directory("tmp", mode=0o1777)
    return writer.close()


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar}  # type: ignore[union-attr]


def test_both_formats_name_the_same_config_and_layers(tmp_path: Path) -> None:
    """Each digest and size is that of the file, and there is one manifest with one platform."""
    digest = write_archive(tmp_path / "a.tar", NAME, CONFIG, (layer(tmp_path),))
    files = contents(tmp_path / "a.tar")
    index: dict[str, Any] = json.loads(files["index.json"])
    [entry] = index["manifests"]
    manifest = json.loads(files[blob(entry["digest"])])
    [docker] = json.loads(files["manifest.json"])
    config = json.loads(files[docker["Config"]])

    assert entry["digest"] == digest
    assert entry["platform"] == {"architecture": "amd64", "os": "linux"}
    assert entry["annotations"]["io.containerd.image.name"] == NAME
    assert docker["RepoTags"] == [NAME]
    assert blob(manifest["config"]["digest"]) == docker["Config"]
    assert [blob(each["digest"]) for each in manifest["layers"]] == docker["Layers"]
    assert [each["digest"] for each in manifest["layers"]] == config["rootfs"]["diff_ids"]
    for each in (entry, manifest["config"], *manifest["layers"]):
        content = files[blob(each["digest"])]
        assert (len(content), sha256(content)) == (each["size"], each["digest"])
    assert (config["config"]["User"], config["config"]["Env"]) == ("65532:65532", ["A=b=c"])


def blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_a_layer_depends_on_nothing_but_its_files(tmp_path: Path) -> None:
    """Entries belong to root, have no time, and follow their directories."""
    first, second = layer(tmp_path, "a"), layer(tmp_path, "b")
    with tarfile.open(first.path) as tar:
        entries = [(each.name, each.mode, each.mtime, each.uid) for each in tar]

    assert first.digest == second.digest
    assert entries == [
        ("opt", 0o755, 0, 0),
        ("opt/a", 0o755, 0, 0),
        ("opt/a/b", 0o755, 0, 0),
        ("tmp", 0o1777, 0, 0),
    ]


def test_the_names_in_an_archive_are_read(tmp_path: Path) -> None:
    """Other files are no archives of images."""
    write_archive(tmp_path / "a.tar", NAME, CONFIG, (layer(tmp_path),))
    (tmp_path / "text").write_text("no archive")
    files = contents(tmp_path / "a.tar")
    writer = LayerWriter(tmp_path / "oci.tar")
    writer.add_bytes("index.json", files["index.json"])
    writer.close()

    assert image_names(tmp_path / "a.tar") == (NAME,)
    assert image_names(tmp_path / "oci.tar") == (NAME,)
    assert image_names(tmp_path / "text") is False
    assert image_names(tmp_path / "layer.tar") is False


def test_the_bill_of_materials_lists_distributions_and_packages(tmp_path: Path) -> None:
    """Each component has a package URL, and the order does not depend on the file system."""
    for name, version in (("beta", "2"), ("alpha", "1"), ("other", "3")):
        folder = tmp_path / "site" / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    status = tmp_path / "status"
    status.mkdir()
    (status / "libc6").write_text("Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\n")
    text = bill_of_materials([tmp_path / "site"], status, names=("alpha", "beta"))
    urls = [each["purl"] for each in json.loads(text)["components"]]

    assert [each for each in urls if "python" not in each] == [
        "pkg:deb/debian/libc6@2.36-9?arch=amd64",
        "pkg:pypi/alpha@1",
        "pkg:pypi/beta@2",
    ]
