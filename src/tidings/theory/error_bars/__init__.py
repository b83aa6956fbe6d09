"""How sure a prediction is, given how sure its parameters are."""
