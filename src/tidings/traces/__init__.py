"""Readers of trace tables, and Spark to read them with."""
