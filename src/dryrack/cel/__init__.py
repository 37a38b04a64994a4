"""CEL with the DRA device environment: parse, check, estimate, evaluate."""
