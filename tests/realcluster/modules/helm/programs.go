//go:build programs

// Package programs names the programs that are built from this module.
package programs

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
