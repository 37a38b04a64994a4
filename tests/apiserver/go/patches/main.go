// Applies JSON patches and JSON merge patches as the API server does: one case per line in, one
// answer per line out.
package main

import (
	"encoding/json"

	"dryrack.dev/apiserver/internal/lines"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

type question struct {
	Live  json.RawMessage `json:"live"`
	Patch json.RawMessage `json:"patch"`
	Merge bool            `json:"merge"`
}

func main() {
	lines.Answer(lines.Refusable(patched))
}

func patched(line []byte) (json.RawMessage, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	if asked.Merge {
		return jsonpatch.MergePatch(asked.Live, asked.Patch)
	}
	patch, err := jsonpatch.DecodePatch(asked.Patch)
	if err != nil {
		return nil, err
	}
	return patch.Apply(asked.Live)
}
