"""`dryrack fault`: what is to go wrong on a cluster."""
