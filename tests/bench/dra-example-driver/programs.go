//go:build programs

// Package programs names the programs that are built from this module.
package programs

import (
	_ "sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin"
)
