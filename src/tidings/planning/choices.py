"""What plans are asked with if nothing is said: light to import, so that help can show it."""

ALL = "all"  # brokers, or whoever is meant
SECONDS = 60.0  # CPU seconds that all simulations of a plan together may take
SCHEME_SECONDS = 6.0  # CPU seconds that simulating one scheme may take: 30 for all five
