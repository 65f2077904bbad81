"""Samplers for other libraries' own interfaces, each in a module that imports its library."""
