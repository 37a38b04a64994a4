"""Indexes of a whole cluster, updated with each change: pods by domain, owners, volumes."""
