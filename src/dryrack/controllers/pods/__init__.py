"""What happens to pods on nodes that do not exist, and to pods that nobody runs any more."""
