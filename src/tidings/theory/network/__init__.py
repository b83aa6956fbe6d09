"""A system as theory sees it: what arrives over its paths, and who wants it."""
