"""Each paper's experiments: its settings and claims as data, our results, where they differ."""
