"""A watched system on a page that stays up to date, and as metrics for other monitors."""
