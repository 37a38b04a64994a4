"""Claims of the pods that are scheduled: made, waited for, shared by a group, let go."""
