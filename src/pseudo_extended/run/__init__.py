"""The run: starts, preflight, the compiled programs, the loop over chains, progress."""
