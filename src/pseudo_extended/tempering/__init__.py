"""Tempering: the path from base to target, ladders of temperatures, swaps between them, and what they are worth."""
