"""Failing brokers and links, and what each recovery scheme makes of them."""
