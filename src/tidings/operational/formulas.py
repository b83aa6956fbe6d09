"""Formulas of response times, by name: light to import, so that help can list them."""

from __future__ import annotations

FORMULAS = ("discipline", "paper")
