"""Content-based timeliness: six traffic settings, and imprecise knowledge of contents."""
