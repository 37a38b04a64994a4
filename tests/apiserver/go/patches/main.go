// Applies JSON patches and JSON merge patches as the API server does: one case per line in, one
// answer per line out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

type question struct {
	Live  json.RawMessage `json:"live"`
	Patch json.RawMessage `json:"patch"`
	Merge bool            `json:"merge"`
}

type answer struct {
	Object json.RawMessage `json:"object,omitempty"`
	Error  string          `json:"error,omitempty"`
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
	if err := json.Unmarshal(line, &asked); err != nil {
		panic(err)
	}
	made, err := patched(asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Object: made}
}

func patched(asked question) ([]byte, error) {
	if asked.Merge {
		return jsonpatch.MergePatch(asked.Live, asked.Patch)
	}
	patch, err := jsonpatch.DecodePatch(asked.Patch)
	if err != nil {
		return nil, err
	}
	return patch.Apply(asked.Live)
}
