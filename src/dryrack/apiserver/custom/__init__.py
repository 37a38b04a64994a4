"""Custom resource definitions: kinds that are made while the server runs."""
