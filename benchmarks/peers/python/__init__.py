"""Peers in Python."""
