"""Delays as functions of time: grids, distributions, stages in series, paths between brokers."""
