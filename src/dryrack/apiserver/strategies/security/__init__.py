"""Pod Security admission."""
