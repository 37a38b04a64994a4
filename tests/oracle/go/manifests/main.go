// Command manifests answers which documents kubectl finds in the text of a file.
//
// It reads one case per line on standard input and writes one answer per line, in order, on
// standard output. A case is a JSON object with the text; the answer has the documents as JSON,
// without those that are empty, and the error at which reading ends.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"dryrack.dev/oracle/internal/lines"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// How far kubectl looks into a file to tell JSON from YAML.
const lookAhead = 4096

type question struct {
	Text string `json:"text"`
}

type answer struct {
	Documents []json.RawMessage `json:"documents"`
	Error     string            `json:"error,omitempty"`
}

func read(text string) answer {
	a := answer{Documents: []json.RawMessage{}}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), lookAhead)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return a
		}
		if err != nil {
			a.Error = err.Error()
			return a
		}
		if len(document) > 0 && string(document) != "null" {
			a.Documents = append(a.Documents, document)
		}
	}
}

func main() {
	lines.Main(func(line []byte) (answer, error) {
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return answer{}, err
		}
		return read(q.Text), nil
	})
}
