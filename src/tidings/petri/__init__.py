"""Queueing Petri nets: the net as data, generation from a workload, compiled simulation."""
