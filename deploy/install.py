"""
Install dryrack from wheels in the build stage of the image: `install.py WHEELS TARGET`.

Dependencies come from WHEELS too, or from the package index if WHEELS has only dryrack.
"""

import shutil
import subprocess
import sys
from pathlib import Path


def main(wheels: Path, target: Path) -> None:
    """Install, strip the libraries, and write the bill of materials."""
    bundled = sorted(wheels.glob("pip-*.whl"))
    pip = [sys.executable, f"{bundled[0]}/pip"] if bundled else [sys.executable, "-m", "pip"]
    source = ["--no-index", "--find-links", str(wheels)] if bundled else []
    [dryrack] = wheels.glob("dryrack-*.whl")
    constraints = ["--constraint", str(wheels / "constraints.txt")]
    options = [
        "--target",
        str(target),
        "--no-compile",
        "--no-cache-dir",
        "--root-user-action=ignore",
    ]
    subprocess.run([*pip, "install", *options, *source, *constraints, str(dryrack)], check=True)
    # Console scripts name the Python of the build stage.
    shutil.rmtree(target / "bin", ignore_errors=True)
    if strip := shutil.which("strip"):
        libraries = [str(each) for each in sorted(target.rglob("*.so*")) if each.is_file()]
        subprocess.run([strip, "--strip-unneeded", *libraries], check=True)
    # A compiled file has the time of its source.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(target))
    from dryrack.cli.images.materials import bill_of_materials

    text = bill_of_materials([target], Path("/var/lib/dpkg/status.d"))
    (target / "sbom.cdx.json").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
