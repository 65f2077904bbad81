"""Peers: one file with one function each, with the settings that their authors recommend.

A peer is imported only in the process that runs it, so nothing but what is asked for needs to be installed.
"""

from collections.abc import Callable
from importlib import import_module

from suite.answer import Answer
from suite.problem import Problem

MODULES = {
    "default": "ours",
    "default-transform": "ours_transform",
    "default-no-gradient": "ours_no_gradient",
    "nuts": "plain_nuts",
    "dynesty": "dynesty_dynamic",
    "ultranest": "ultranest_reactive",
    "nautilus": "nautilus_networks",
    "tempest": "tempest_persistent",
    "blackjax-smc": "blackjax_smc",
    "blackjax-nss": "blackjax_nss",
    "pymc-smc": "pymc_smc",
    "numpyro": "numpyro_nuts",
    "nutpie": "nutpie_nuts",
    "emcee": "emcee_moves",
    "reddemcee": "reddemcee_ladder",
}
"""The module of each peer, whose `run` is its function."""
PACKAGES = {
    "default": "pseudo-extended",
    "default-transform": "pseudo-extended",
    "default-no-gradient": "pseudo-extended",
    "nuts": "pseudo-extended",
    "dynesty": "dynesty",
    "ultranest": "ultranest",
    "nautilus": "nautilus-sampler",
    "tempest": "tempest-sampler",
    "blackjax-smc": "blackjax",
    "blackjax-nss": "blackjax",
    "pymc-smc": "pymc",
    "numpyro": "numpyro",
    "nutpie": "nutpie",
    "emcee": "emcee",
    "reddemcee": "reddemcee",
}
"""The package of each peer, whose version is recorded."""
USES_PRIOR = ("dynesty", "ultranest", "nautilus", "tempest", "blackjax-smc", "blackjax-nss", "pymc-smc", "reddemcee")
"""Peers that start from a prior, and are given one where the problem has none."""

Peer = Callable[[Problem, int], Answer]


def load(name: str) -> Peer:
    """The function of a peer."""
    return import_module(f"suite.peers.{MODULES[name]}").run
