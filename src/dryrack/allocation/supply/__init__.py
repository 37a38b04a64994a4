"""What there is: pools, taints, counters, capacity, and what is in use."""
