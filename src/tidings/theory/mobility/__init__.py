"""Peers that come and go: queues whose server is connected for a time and away for a time."""
