"""Recorded histories checked on Spark: was every notification due, and did every due one come?"""
