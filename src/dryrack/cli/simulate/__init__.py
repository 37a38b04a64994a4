"""`dryrack simulate`: policies and fleets compared on a trace."""
