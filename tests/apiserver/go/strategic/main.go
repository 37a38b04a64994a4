// Applies strategic merge patches as Kubernetes does: one case per line in, one answer per line
// out. A case names the kind by apiVersion and kind of the live object.
package main

import (
	"dryrack.dev/apiserver/internal/kinds"
	"dryrack.dev/apiserver/internal/lines"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

type question struct {
	Live  map[string]any `json:"live"`
	Patch map[string]any `json:"patch"`
}

func main() {
	lines.Answer(lines.Refusable(patched))
}

func patched(line []byte) (map[string]any, error) {
	var asked question
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &asked); err != nil {
		return nil, err
	}
	version, _ := asked.Live["apiVersion"].(string)
	kind, _ := asked.Live["kind"].(string)
	object, err := kinds.Scheme().New(schema.FromAPIVersionAndKind(version, kind))
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergeMapPatch(asked.Live, asked.Patch, object)
}
