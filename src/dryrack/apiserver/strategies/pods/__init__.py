"""Pods: the kind that everything else is about."""
