"""Brokers and links that fail and are repaired: what that costs in events and in time."""
