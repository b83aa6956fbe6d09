"""Tidings: will it arrive in time?"""
