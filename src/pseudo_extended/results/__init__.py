"""Analysis: everything after a run, computed from weighted points."""
