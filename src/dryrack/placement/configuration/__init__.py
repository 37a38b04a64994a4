"""KubeSchedulerConfigurations: read a file, and resolve its profiles."""
