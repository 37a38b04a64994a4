"""Objects that depend on others: gone with their owners, or set free."""
