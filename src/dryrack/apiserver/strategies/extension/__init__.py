"""The kinds by which others extend the server: webhooks and API services."""
