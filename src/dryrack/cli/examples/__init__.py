"""`dryrack examples`: list, print and copy the examples that come with dryrack."""
