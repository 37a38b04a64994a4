"""What every room may use: errors, limits, and the ports of time and chance."""
