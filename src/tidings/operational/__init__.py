"""Operational analysis: rates, loads, responses and delivery latencies from means alone."""
