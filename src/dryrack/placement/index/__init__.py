"""What is known of a whole cluster, kept as it changes: pods by domain, images, owners, volumes."""
