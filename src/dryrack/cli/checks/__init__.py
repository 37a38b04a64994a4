"""`dryrack check`: the invariants of a cluster."""
