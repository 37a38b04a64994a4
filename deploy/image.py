"""
Build the container image without a container engine and without a registry.

    python3 deploy/image.py context DIR    write the build context of deploy/Dockerfile
    python3 deploy/image.py build DIR      write the context, and build an archive with buildah

Debian 12 and its packages `buildah` and `binutils` are required. All files come from the package
indexes of apt and pip. The same wheels give the same digest.
"""

import argparse
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
USER = 65532
# The interpreter, and the libraries of its modules and of wheels.
BASE_PACKAGES = (
    *("base-files", "netbase", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6", "zlib1g"),
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libssl3", "libffi8"),
    *("libbz2-1.0", "liblzma5", "libexpat1", "libsqlite3-0", "libuuid1", "libcrypt1"),
)
# `strip`, for the build stage.
TOOL_PACKAGES = (
    *("binutils", "binutils-common", "libbinutils", "libctf0", "libctf-nobfd0", "libjansson4"),
    *("libzstd1", "libgprofng0"),
)
LEFT_OUT = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/perl5"),
    *("usr/share/bug", "usr/share/info", "usr/sbin", "sbin", "var/cache", "var/backups"),
    *("usr/lib/python3.11/pydoc_data", "usr/lib/python3.11/lib2to3"),
)
# Wheels for the Python of Debian 12.
PYTHON = "3.11"
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\n"
    f"nonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a program and return its output; end with its message if it fails."""
    words = [str(each) for each in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def write_context(directory: Path, *, with_base: bool) -> None:
    """Write all that deploy/Dockerfile needs."""
    shutil.rmtree(directory, ignore_errors=True)
    wheels = directory / "wheels"
    wheels.mkdir(parents=True)
    for name in ("Dockerfile", "install.py"):
        shutil.copy(DEPLOY / name, directory)
    shutil.copy(ROOT / "constraints.txt", wheels)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    os.environ["SOURCE_DATE_EPOCH"] = "315532800"
    run(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, ROOT)
    if not with_base:
        for name in ("base.tar", "tools.tar"):
            write_tar(directory / name, directory / "none")
        return
    if 'VERSION_ID="12"' not in Path("/etc/os-release").read_text():
        sys.exit("the base is made from packages of Debian 12; use --without-base elsewhere")
    [dryrack] = wheels.glob("dryrack-*.whl")
    machine = platform.machine()
    platforms = [f"--platform=manylinux{each}_{machine}" for each in ("_2_34", "_2_28", "_2_17")]
    platforms += [f"--platform=manylinux2014_{machine}", f"--platform=manylinux_2_26_{machine}"]
    chosen = (f"--python-version={PYTHON}", "--implementation=cp", "--only-binary=:all:")
    constraints = ("--constraint", ROOT / "constraints.txt")
    run(*pip, "download", "--dest", wheels, *chosen, *platforms, *constraints, dryrack)
    run(*pip, "download", "--dest", wheels, "--no-deps", *chosen, "pip")
    base, tools = directory / "base", directory / "tools"
    unpack(base, BASE_PACKAGES)
    # Scanners read the packages of distroless images in this folder.
    status = base / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for archive in base.with_suffix(".debs").iterdir():
        control = run("dpkg-deb", "--field", archive)
        (status / archive.name.partition("_")[0]).write_text(control)
    for name, text in ACCOUNTS.items():
        (base / name).write_text(text)
    (base / "usr/bin/python3").symlink_to("python3.11")
    roots = sorted((base / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    certificates = base / "etc/ssl/certs/ca-certificates.crt"
    certificates.write_bytes(b"".join(each.read_bytes() for each in roots))
    architecture = machine.replace("_", "-")
    unpack(tools, (*TOOL_PACKAGES, f"binutils-{architecture}-linux-gnu"))
    for name, folder in (("base.tar", base), ("tools.tar", tools)):
        write_tar(directory / name, folder)
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_suffix(".debs"))


def unpack(target: Path, packages: tuple[str, ...]) -> None:
    """Unpack Debian packages without the files that nothing reads."""
    archives = target.with_suffix(".debs")
    archives.mkdir(exist_ok=True)
    run("apt-get", "download", *packages, cwd=archives)
    for archive in sorted(archives.iterdir()):
        run("dpkg", "-x", archive, target)
    for name in LEFT_OUT:
        shutil.rmtree(target / name, ignore_errors=True)
    for path in target.rglob("gconv"):
        shutil.rmtree(path)


def write_tar(path: Path, folder: Path) -> None:
    """Write a folder as an archive that depends only on names, modes, and contents."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        # Some builders do not recognize an archive without a file.
        names = sorted(folder.rglob("*")) if folder.exists() else []
        for each in names:
            info = tar.gettarinfo(str(each), str(each.relative_to(folder)))
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            with each.open("rb") if info.isreg() else io.BytesIO() as content:
                tar.addfile(info, content)
        if not names:
            place = tarfile.TarInfo("opt")
            place.type, place.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(place)


def build(directory: Path, tag: str) -> None:
    """Build the image from the context, and write it as an archive for docker and containerd."""
    if shutil.which("buildah") is None:
        sys.exit("buildah not found; install it with: apt-get install buildah")
    settings = directory / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    policy = settings / "policy.json"
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    registries = settings / "registries.conf"
    registries.write_text("unqualified-search-registries = []\n")
    store = ("--root", settings / "store", "--runroot", settings / "run", "--storage-driver", "vfs")
    buildah = ("buildah", *store)
    options = ("--isolation", "chroot", "--signature-policy", policy, "--timestamp", "0")
    os.environ["CONTAINERS_REGISTRIES_CONF"] = str(registries)
    context = directory / "context"
    run(*buildah, "bud", *options, "--no-cache", "--format", "oci", "--tag", tag, context)
    archive = directory / "dryrack.tar"
    archive.unlink(missing_ok=True)
    run(*buildah, "push", "--signature-policy", policy, tag, f"docker-archive:{archive}:{tag}")
    digest = run(*buildah, "inspect", "--format", "{{.FromImageDigest}}", "--type", "image", tag)
    shutil.rmtree(settings)
    sys.stdout.write(f"{tag} {digest.strip()}: {archive}, {archive.stat().st_size / 1e6:.0f} MB\n")


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description="Build the container image of dryrack.")
    parser.add_argument("command", choices=("context", "build"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--without-base", action="store_true", help="BASE has Python and pip")
    parser.add_argument("--tag", default="localhost/dryrack:latest")
    arguments = parser.parse_args()
    directory = arguments.directory.absolute()
    if arguments.command == "context":
        write_context(directory, with_base=not arguments.without_base)
    else:
        write_context(directory / "context", with_base=True)
        build(directory, arguments.tag)


if __name__ == "__main__":
    main()
