"""The experiments of the pseudo-extended MCMC paper (Nemeth et al. 2019): `pseudo-extended reproduce`."""
