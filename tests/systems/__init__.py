"""A catalogue of systems, and what both engines said of them when it was frozen."""
