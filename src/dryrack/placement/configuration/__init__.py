"""KubeSchedulerConfigurations: what a file says, and the profiles that it comes to."""
