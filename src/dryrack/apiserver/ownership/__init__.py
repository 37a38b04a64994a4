"""Patches, owners of fields, and server-side apply."""
