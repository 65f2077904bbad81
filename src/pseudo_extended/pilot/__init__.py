"""The pilot: before any chain starts it looks for modes, anneals from candidate bases and chooses the best of them."""
