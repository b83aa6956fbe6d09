"""What was counted becomes laws, standard errors and a system; without Spark."""
