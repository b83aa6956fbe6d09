"""The notification-loss paper's experiments, run again."""
