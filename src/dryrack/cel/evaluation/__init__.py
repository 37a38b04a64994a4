"""Running an expression, and counting what it costs."""
