"""Read the current objects of a cluster, for commands that write nothing."""
