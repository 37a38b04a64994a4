"""Limits of a namespace: what its containers, pods and volumes get, and must keep to."""
