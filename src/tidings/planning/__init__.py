"""What to change: alternatives compared, and the cheapest that meets a target."""
