"""Who has what, and what is free: a cluster's devices, claims and gangs, for whoever shows them."""
