"""Pods and templates of pods."""
