"""Spark counts what traces hold: one pass a table, into statistics that add up."""
