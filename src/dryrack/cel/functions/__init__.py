"""The functions of CEL, one module per library, keyed by overload id or function name."""
