"""A control plane as a process: start, state, logs, probes and end."""
