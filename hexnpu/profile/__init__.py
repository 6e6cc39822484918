"""Device logs become reports, timelines, comparisons and traces. Imports nothing of the offload path."""
