"""Peers that are away at times, and subscribers that come and go."""
