"""The performance-methodology paper's case study: fifteen brokers, two load scenarios."""
