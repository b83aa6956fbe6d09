"""Running brokers: what they say of themselves, as the beginning of a system file."""
