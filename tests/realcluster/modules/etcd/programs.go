//go:build programs

// Package programs names the programs that are built from this module.
package programs

import (
	_ "go.etcd.io/etcd/server/v3"
)
