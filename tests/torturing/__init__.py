"""Commands that are disturbed and run again: subjects, faults, and who holds the two together."""
