"""All effects at once: one system with every effect, and which of them interact."""
