"""hexnpu: offload, deploy, profile and emulate for the Snapdragon Hexagon NPU."""
