"""What can be done with objects: read, list, watch, write, scale, delete."""
