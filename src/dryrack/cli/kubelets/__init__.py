"""Virtual kubelets that call the driver programs of their nodes: `dryrack kubelet`."""
