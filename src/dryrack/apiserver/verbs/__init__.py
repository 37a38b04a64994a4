"""The verbs of objects: read, list, watch, write, scale, delete."""
