"""Admission webhooks: what they are asked, and what comes of their answers."""
