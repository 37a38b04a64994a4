"""Types of an expression, and what is wrong with it before it runs."""
