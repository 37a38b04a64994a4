"""Importers: the formats of public traces, each read into jobs and a check."""
