"""What the page shows, computed from what informers tell: pure, and anew only where it changed."""
