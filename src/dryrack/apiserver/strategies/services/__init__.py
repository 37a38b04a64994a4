"""Services: what they get from the cluster's ranges, and what they may not have."""
