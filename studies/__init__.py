"""The papers' experiments, and ours: their settings and claims as data, our runs, what differs."""
