"""`dryrack demo`: scenes that are played and checked."""
