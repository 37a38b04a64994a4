// Applies strategic merge patches as Kubernetes does: one case per line in, one answer per line
// out. A case names the kind by apiVersion and kind of the live object.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"dryrack.dev/apiserver/kinds"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

type question struct {
	Live  map[string]any `json:"live"`
	Patch map[string]any `json:"patch"`
}

type answer struct {
	Object map[string]any `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := out.Encode(answered(lines.Bytes())); err != nil {
			panic(err)
		}
	}
}

func answered(line []byte) (result answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	var asked question
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	version, _ := asked.Live["apiVersion"].(string)
	kind, _ := asked.Live["kind"].(string)
	object, err := kinds.Scheme().New(schema.FromAPIVersionAndKind(version, kind))
	if err != nil {
		return answer{Error: err.Error()}
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(asked.Live, asked.Patch, object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Object: merged}
}
