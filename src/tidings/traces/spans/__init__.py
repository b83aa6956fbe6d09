"""Spans in the formats that tracing tools write, each turned into OTLP JSON; without Spark."""
