"""Outcomes as tables, pictures and one HTML page; computes nothing."""
