"""`hexnpu trace`."""
