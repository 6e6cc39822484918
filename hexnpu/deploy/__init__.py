"""From a checkout to a device: targets, push, remote runs. Knows nothing of graphs, sessions or profiles."""
