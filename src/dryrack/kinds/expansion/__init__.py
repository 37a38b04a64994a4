"""Objects that others stand for: pods of workloads, claims of templates."""
