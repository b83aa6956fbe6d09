"""What a publish/subscribe system is, as data, and the result tables."""
