"""What makes a flow of a workload besides its publisher: light to import, for help lists it."""

FLOWS = ("type", "content")
