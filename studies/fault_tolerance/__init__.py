"""Fault tolerance: failing brokers and links under recovery schemes, in trees and in graphs."""
