"""Many predictions at once, shared out over a cluster."""
