"""Who owns which fields, and what a patch makes of an object."""
