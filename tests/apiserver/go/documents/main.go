// Reads documents of OpenAPI v2 as Kubernetes does, from JSON and from protobuf, and tells whether
// both say the same: one case per line in, one answer per line out.
package main

import (
	"encoding/json"
	"fmt"

	"dryrack.dev/apiserver/internal/lines"
	openapi "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"
)

type question struct {
	JSON []byte `json:"json"`
	Wire []byte `json:"wire"`
}

type answer struct {
	Definitions int    `json:"definitions"`
	Difference  string `json:"difference,omitempty"`
}

func main() {
	lines.Answer(answered)
}

func answered(line []byte) answer {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Difference: err.Error()}
	}
	expected, err := openapi.ParseDocument(asked.JSON)
	if err != nil {
		return answer{Difference: "the JSON: " + err.Error()}
	}
	got := &openapi.Document{}
	if err := proto.Unmarshal(asked.Wire, got); err != nil {
		return answer{Difference: "the protobuf: " + err.Error()}
	}
	found := answer{Definitions: len(got.GetDefinitions().GetAdditionalProperties())}
	found.Difference = difference("", expected.ProtoReflect(), got.ProtoReflect())
	return found
}

// The path and values of the first field in which two messages differ.
func difference(path string, expected, got protoreflect.Message) string {
	if len(got.GetUnknown()) > 0 {
		return path + ": fields that nobody knows"
	}
	fields := expected.Descriptor().Fields()
	for index := range fields.Len() {
		field := fields.Get(index)
		below := fmt.Sprintf("%s.%s", path, field.Name())
		if expected.Has(field) != got.Has(field) {
			return fmt.Sprintf("%s: there %v, here %v", below, expected.Has(field), got.Has(field))
		}
		// Messages hold themselves: what is not there must not be looked into.
		if !expected.Has(field) {
			continue
		}
		if found := differenceOfValues(below, field, expected.Get(field), got.Get(field)); found != "" {
			return found
		}
	}
	return ""
}

func differenceOfValues(path string, field protoreflect.FieldDescriptor, expected, got protoreflect.Value) string {
	if field.IsList() {
		return differenceOfLists(path, field, expected.List(), got.List())
	}
	return differenceOfOne(path, field, expected, got)
}

func differenceOfLists(path string, field protoreflect.FieldDescriptor, expected, got protoreflect.List) string {
	if expected.Len() != got.Len() {
		return fmt.Sprintf("%s: there %d, here %d", path, expected.Len(), got.Len())
	}
	for index := range expected.Len() {
		below := fmt.Sprintf("%s[%d]", path, index)
		if found := differenceOfOne(below, field, expected.Get(index), got.Get(index)); found != "" {
			return found
		}
	}
	return ""
}

func differenceOfOne(path string, field protoreflect.FieldDescriptor, expected, got protoreflect.Value) string {
	if field.Message() != nil {
		return difference(path, expected.Message(), got.Message())
	}
	if field.Name() == "yaml" {
		expected, got = plain(expected), plain(got)
	}
	if !expected.Equal(got) {
		return fmt.Sprintf("%s: there %v, here %v", path, expected, got)
	}
	return ""
}

// There are many ways to write a value as YAML, and one as JSON with its keys in order.
func plain(value protoreflect.Value) protoreflect.Value {
	var content any
	if err := yaml.Unmarshal([]byte(value.String()), &content); err != nil {
		return value
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return value
	}
	return protoreflect.ValueOfString(string(encoded))
}
