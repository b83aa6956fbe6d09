"""Compiled primitives: random streams, sampling of laws, the calendar."""
