"""The virtual kubelet, and the end of pods without a kubelet."""
