"""`hexnpu compare`."""
