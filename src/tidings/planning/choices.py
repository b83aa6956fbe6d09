"""What plans are asked with if nothing is said: light to import, so that help can show it."""

ALL = "all"  # brokers, or whoever is meant
SCHEME_SECONDS = 30.0  # CPU seconds that simulating one scheme may take
