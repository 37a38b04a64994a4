"""The demands of claims: requests, and constraints between devices."""
