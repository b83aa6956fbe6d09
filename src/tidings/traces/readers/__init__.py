"""Readers of the formats people have: each maps its records to the canonical trace tables."""
