"""Outcomes as tables, pictures and one HTML page, and in words why they are as they are."""
