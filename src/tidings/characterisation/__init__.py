"""From trace tables to statistics, laws and a fitted system, on Spark."""
