"""Devices of nodes that do not have them: what the documents say, as ResourceSlices."""
