"""The paper's experiments, all of them: `pseudo-extended reproduce`."""
