"""An object as JSON has it, before or beside its typed form."""

from typing import Any

Raw = dict[str, Any]
