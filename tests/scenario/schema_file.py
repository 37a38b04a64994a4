"""
Writes the JSON schema of scenario files from their types.

    python -m tests.scenario.schema_file
"""

from __future__ import annotations

import json

from dryrack.scenario import SCHEMA
from dryrack.scenario.model import schema

if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n")
