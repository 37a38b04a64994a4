"""
Extract the fields of the structs of all served kinds from Kubernetes' Go types.

    python -m tests.apiserver.extract_structs 1.37

OpenAPI does not tell whether an empty field is left out, nor which Go type a refusal names. The
file that this writes is data, and never edited.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.apiserver.extract_schemas import SCHEMAS

from dryrack.kinds.releases import Release

MODULE = Path(__file__).parent / "go"


def main(release: Release) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch) / "go"
        shutil.copytree(MODULE, module)
        output = _output(module, release)
    path = SCHEMAS / f"definitions-{release.value}.json.gz"
    definitions = json.loads(gzip.decompress(path.read_bytes()))
    structs = {name: fields for name, fields in json.loads(output).items() if name in definitions}
    content = json.dumps(structs, separators=(",", ":"), sort_keys=True).encode()
    target = SCHEMAS / f"structs-{release.value}.json.gz"
    target.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    sys.stderr.write(f"{len(structs)} structs, {target.stat().st_size} bytes\n")
    return 0


def _output(module: Path, release: Release) -> bytes:
    """Run the program with the API modules of the release."""
    requirements = module / "go.mod"
    version = f"v0.{release.patch_version.partition('.')[2]}"
    requirements.write_text(re.sub(r"\bv0\.37\.\d+", version, requirements.read_text()))
    (module / "go.sum").unlink()
    tag = f"kubernetes{release.minor}"
    command = ["go", "run", "-mod=mod", f"-tags={tag}", "./structs"]
    return subprocess.run(command, capture_output=True, check=True, cwd=module).stdout


if __name__ == "__main__":
    sys.exit(main(Release(sys.argv[1])))
