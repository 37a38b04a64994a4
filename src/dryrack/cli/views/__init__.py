"""`dryrack devices`, `claims` and `gangs`: who has what, and what is free."""
