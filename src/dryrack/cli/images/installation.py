"""
The files of an image, taken from this installation: Python, its libraries, and the packages.

The image has what this process runs with, so it needs no container engine, registry, or network.
Shared libraries are those that the dynamic loader of this machine finds.
"""

from __future__ import annotations

import platform
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.base.version import __version__
from dryrack.cli.images.archive import ARCHITECTURES, ImageConfig, LayerWriter
from dryrack.cli.images.materials import bill_of_materials

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.metadata import Distribution

    from dryrack.cli.images.archive import Layer

PYTHON = "opt/python"
PACKAGES = "opt/dryrack"
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n"
    "nonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
# Folders of the standard library that no command needs.
_LEFT_OUT = frozenset(
    ("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3")
) | {"tkinter", "_tkinter", "turtledemo", "turtle", "ensurepip", "pydoc_data", "distutils"}
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ImageError(DryrackError):
    """The image cannot be made on this machine, or cannot be imported."""


def image_config() -> ImageConfig:
    """Return the settings of the image; raise on machines that images cannot be made on."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ARCHITECTURES:
        raise ImageError(
            f"an image cannot be made from an installation on {sys.platform} {machine}; "
            "use Linux on x86_64 or aarch64, or build deploy/Dockerfile"
        )
    return ImageConfig(
        architecture=ARCHITECTURES[machine],
        entrypoint=(f"/{PYTHON}/bin/{_executable_name()}", "-m", "dryrack"),
        environment={
            "PATH": f"/{PYTHON}/bin",
            "PYTHONPATH": f"/{PACKAGES}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": f"/{PYTHON}/lib",
            "SSL_CERT_FILE": f"/{_CERTIFICATES}",
        },
        labels={
            "org.opencontainers.image.title": "dryrack",
            "org.opencontainers.image.version": __version__,
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
    )


def write_layers(directory: Path) -> tuple[Layer, ...]:
    """Write one layer with Python and one with the packages; use the directory for files."""
    found = {each.name: each for each in _find_installed("dryrack")}
    files = dict(_package_files(found.values()))
    packages = LayerWriter(directory / "packages.tar")
    libraries = [path for path in files.values() if ".so" in path.suffixes]
    stripped = _strip(libraries, directory / "packages")
    for name, path in sorted(files.items()):
        packages.add_file(f"{PACKAGES}/{name}", stripped.get(path, path))
    folders = sorted({Path(str(each.locate_file(""))) for each in found.values()})
    bill = bill_of_materials(folders, names=found)
    packages.add_bytes(f"{PACKAGES}/sbom.cdx.json", bill.encode())
    return _write_python(directory, libraries), packages.close()


def _write_python(directory: Path, extensions: Sequence[Path]) -> Layer:
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    standard = Path(sysconfig.get_path("stdlib", vars=_BASE))
    modules = [each for each in sorted(_walk(standard)) if each.is_file()]
    layer = LayerWriter(directory / "python.tar")
    for name, text in _ACCOUNTS.items():
        layer.add_bytes(name, text.encode())
    layer.add_directory("tmp", mode=0o1777)
    certificates = ssl.get_default_verify_paths().cafile or f"/{_CERTIFICATES}"
    if Path(certificates).exists():
        layer.add_bytes(_CERTIFICATES, Path(certificates).read_bytes())
    programs = [executable, *(each for each in modules if each.suffix == ".so")]
    libraries = _shared_libraries([*programs, *extensions], extensions)
    stripped = _strip([*programs, *libraries], directory / "python")
    layer.add_file(f"{PYTHON}/bin/{_executable_name()}", stripped.get(executable, executable))
    place = f"{PYTHON}/{sys.platlibdir}/{standard.name}"
    for each in modules:
        layer.add_file(f"{place}/{each.relative_to(standard)}", stripped.get(each, each))
    for each in libraries:
        # Programs name the dynamic loader with its path, and other libraries by their name.
        is_loader = each.name.startswith("ld-")
        place = str(each)[1:] if is_loader else f"{PYTHON}/lib/{each.name}"
        layer.add_bytes(place, stripped.get(each, each).read_bytes(), mode=0o755)
    return layer.close()


def _strip(programs: Sequence[Path], directory: Path) -> Mapping[Path, Path]:
    """Return smaller copies without symbols; none if this machine has no `strip`."""
    strip = shutil.which("strip")
    if strip is None:
        return {}
    directory.mkdir()
    copies = {each: directory / str(number) for number, each in enumerate(programs)}
    for source, copy in copies.items():
        shutil.copy(source, copy)
    # A file that strip cannot read stays as it is.
    subprocess.run(
        [strip, "--strip-unneeded", *map(str, copies.values())], capture_output=True, check=False
    )
    return copies


_BASE = {"base": sys.base_prefix, "installed_base": sys.base_prefix}


def _executable_name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.partition(".")[0] in _LEFT_OUT or path.name.startswith("config-"):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.suffix != ".pyc":
            yield path


def _shared_libraries(programs: Sequence[Path], extensions: Sequence[Path]) -> list[Path]:
    """Return the libraries that the dynamic loader finds, without those in the packages."""
    ldd = shutil.which("ldd")
    if ldd is None:
        raise ImageError("ldd not found; it lists the shared libraries of Python: install libc-bin")
    done = subprocess.run([ldd, *map(str, programs)], capture_output=True, text=True, check=False)
    own = {each.resolve() for each in extensions}
    # A line ends with the path and the address of a library.
    lines = (line.split() for line in done.stdout.splitlines())
    found = {Path(words[-2]) for words in lines if len(words) > 1 and words[-2].startswith("/")}
    # Libraries for the names of hosts are loaded by name.
    places = {each.parent for each in found if each.name.startswith("libc.so")}
    found |= {each for place in places for each in place.glob("libnss_[df][ni]*.so.2")}
    return sorted(each for each in found if each.resolve() not in own)


def _find_installed(name: str) -> Iterator[Distribution]:
    """Yield a distribution and those that it requires, each once."""
    names, seen = [name], set[str]()
    while names:
        name = names.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            # It is for another platform or another Python.
            continue
        yield found
        for requirement in found.requires or ():
            match = _REQUIREMENT.match(requirement)
            if match and "extra ==" not in requirement:
                names.append(match[0])


def _package_files(distributions: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    """Yield the files of distributions by their names in the image."""
    for each in distributions:
        if each.files is None:
            raise ImageError(
                f"package {each.name} has no list of its files; install dryrack with pip in a "
                "virtual environment"
            )
        for file in each.files:
            path = Path(str(each.locate_file(file)))
            is_needed = file.suffix not in (".pyc", ".pth") and file.name != "direct_url.json"
            if ".." not in file.parts and is_needed and path.is_file():
                yield str(file), path
    # An editable installation names no files of the package itself.
    package = Path(__file__).parents[2]
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield f"{package.name}/{path.relative_to(package)}", path
