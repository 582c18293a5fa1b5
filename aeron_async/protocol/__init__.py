"""Aeron's control protocol, frames and file layouts as pure codecs: bytes in, values out, and no I/O."""
