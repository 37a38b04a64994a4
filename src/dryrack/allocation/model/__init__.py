"""Releases, identities, reasons and errors of allocation."""
