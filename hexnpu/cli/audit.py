"""`hexnpu audit`."""
