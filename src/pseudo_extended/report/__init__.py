"""The report of a run: one HTML file that needs nothing else."""

from pseudo_extended.report.page import report as report
