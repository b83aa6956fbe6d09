"""Subscriptions that come and go: what is missed because they take time to spread."""
