"""A real broker network on this machine: a system's brokers as servers, its links as relays."""
