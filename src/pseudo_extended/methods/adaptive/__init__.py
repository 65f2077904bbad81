"""The default method, adaptive pseudo-extended MCMC: its choices, parameters, moves and index step."""
