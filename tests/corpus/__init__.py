"""Other people's manifests against dryrack: `make corpus DIR=FOLDER`."""
