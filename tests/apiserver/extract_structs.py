"""
Extract the fields of the structs of all served kinds from Kubernetes' Go types.

    python -m tests.apiserver.extract_structs

OpenAPI does not tell whether an empty field is left out, nor which Go type a refusal names. The
file that this writes is data, and never edited.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from tests.golang import build

MODULE = Path(__file__).parent / "go"
_SCHEMAS = Path(__file__).parents[2] / "src/dryrack/kinds/schemas"
TARGET = _SCHEMAS / "structs.json.gz"


def main() -> int:
    program = build(MODULE).path("structs")
    output = subprocess.run([str(program)], capture_output=True, check=True, timeout=60).stdout
    definitions = json.loads(gzip.decompress((_SCHEMAS / "definitions.json.gz").read_bytes()))
    structs = {name: fields for name, fields in json.loads(output).items() if name in definitions}
    content = json.dumps(structs, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    sys.stderr.write(f"{len(structs)} structs, {TARGET.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
