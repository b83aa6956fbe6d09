"""Answers within a stated error: by theory where it is known to hold, else by simulation."""
