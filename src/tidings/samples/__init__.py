"""Recorded runs of real brokers, small enough to come along, and how they are loaded."""
