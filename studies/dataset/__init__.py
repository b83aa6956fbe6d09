"""Runs of real brokers as a public dataset: recorded, counted, described, compared."""
