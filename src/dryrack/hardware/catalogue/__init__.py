"""Real machines as data: which devices an instance type has, as its vendors' drivers say it."""
