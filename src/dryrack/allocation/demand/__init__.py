"""What claims ask for: requests, and the constraints between devices."""
