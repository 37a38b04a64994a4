// Follows the owners of an object's fields through a series of writes, as Kubernetes does: one
// series per line in, one answer per line out. The first argument is the file with the server's
// OpenAPI definitions.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"

	"dryrack.dev/apiserver/internal/kinds"
	"dryrack.dev/apiserver/internal/lines"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type write struct {
	Manager string         `json:"manager"`
	Update  map[string]any `json:"update"`
	Apply   map[string]any `json:"apply"`
	Force   bool           `json:"force"`
}

type series struct {
	APIVersion  string     `json:"apiVersion"`
	Kind        string     `json:"kind"`
	Subresource string     `json:"subresource"`
	Reset       [][]string `json:"reset"`
	Writes      []write    `json:"writes"`
}

type outcome struct {
	Object map[string]any `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
}

var (
	scheme = kinds.Scheme()
	types  managedfields.TypeConverter
)

func main() {
	types = converter(os.Args[1])
	lines.Answer(followed)
}

func converter(path string) managedfields.TypeConverter {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	content, err := gzip.NewReader(file)
	if err != nil {
		panic(err)
	}
	definitions := map[string]*spec.Schema{}
	if err := json.NewDecoder(content).Decode(&definitions); err != nil {
		panic(err)
	}
	made, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		panic(err)
	}
	return made
}

func followed(line []byte) []outcome {
	var asked series
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &asked); err != nil {
		panic(err)
	}
	kind := schema.FromAPIVersionAndKind(asked.APIVersion, asked.Kind)
	reset := fieldpath.NewSet()
	for _, path := range asked.Reset {
		parts := make([]any, len(path))
		for i, part := range path {
			parts[i] = part
		}
		reset.Insert(fieldpath.MakePathOrDie(parts...))
	}
	version := fieldpath.APIVersion(asked.APIVersion)
	filter := map[fieldpath.APIVersion]fieldpath.Filter{version: fieldpath.NewExcludeSetFilter(reset)}
	manager, err := managedfields.NewDefaultFieldManager(
		types, asIs{}, asIs{}, scheme, kind, kind.GroupVersion(), asked.Subresource, filter)
	if err != nil {
		panic(err)
	}
	live := empty(kind)
	found := []outcome{}
	for _, each := range asked.Writes {
		made, err := written(manager, live, kind, each)
		if err != nil {
			found = append(found, outcome{Error: err.Error()})
			continue
		}
		live = typed(made, kind)
		if accessor, _ := meta.Accessor(live); accessor.GetUID() == "" {
			accessor.SetUID("u")
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
		if err != nil {
			panic(err)
		}
		found = append(found, outcome{Object: raw})
	}
	return found
}

func written(
	manager *managedfields.FieldManager, live runtime.Object, kind schema.GroupVersionKind, each write,
) (result runtime.Object, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	if each.Apply != nil {
		wanted := &unstructured.Unstructured{Object: each.Apply}
		return manager.Apply(live.DeepCopyObject(), wanted, each.Manager, each.Force)
	}
	update := typed(&unstructured.Unstructured{Object: each.Update}, kind)
	return manager.UpdateNoErrors(live.DeepCopyObject(), update, each.Manager), nil
}

func empty(kind schema.GroupVersionKind) runtime.Object {
	made, err := scheme.New(kind)
	if err != nil {
		panic(err)
	}
	made.GetObjectKind().SetGroupVersionKind(kind)
	return made
}

// typed is the object as the Go type of its kind.
func typed(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	raw, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object
	}
	made := empty(kind)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, made); err != nil {
		panic(err)
	}
	made.GetObjectKind().SetGroupVersionKind(kind)
	return made
}

// asIs converts nothing and defaults nothing.
type asIs struct{}

func (asIs) Convert(in, out, context any) error { return fmt.Errorf("nothing is converted") }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if raw, ok := in.(*unstructured.Unstructured); ok {
		return typed(raw, raw.GroupVersionKind()), nil
	}
	known, _, err := scheme.ObjectKinds(in)
	if err != nil {
		return nil, err
	}
	in.GetObjectKind().SetGroupVersionKind(known[0])
	return in, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}
