"""Tests for your own kernels, instruments and methods: their contracts, and exact invariance."""

from pseudo_extended.testing.contracts import ContractError as ContractError
from pseudo_extended.testing.contracts import check_instrument as check_instrument
from pseudo_extended.testing.contracts import check_kernel as check_kernel
from pseudo_extended.testing.contracts import check_method as check_method
from pseudo_extended.testing.invariance import InvarianceReport as InvarianceReport
from pseudo_extended.testing.invariance import check_invariance as check_invariance

__all__ = ["ContractError", "InvarianceReport", "check_instrument", "check_invariance", "check_kernel", "check_method"]
