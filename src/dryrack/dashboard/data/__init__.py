"""The data of the dashboard, computed from objects of informers: only where it changed."""
