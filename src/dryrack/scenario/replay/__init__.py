"""Record clusters as scenarios, replay them with changes, and compare the outcomes."""
