"""Doors that other projects' users know: NVIDIA's settings, VirtualClient's profiles and metrics. It only
translates."""
