"""Delays by theory: queues, links, repairs and peers as stages of paths, and how far it is off."""
