"""`dryrack driver`: the conformance suite for DRA drivers."""
