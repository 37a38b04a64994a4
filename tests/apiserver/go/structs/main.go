// Prints how Go writes every struct of the served kinds: for each definition the JSON names of
// its fields, their Go types, and when they are left out.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	"dryrack.dev/apiserver/internal/kinds"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// field is a JSON name, a Go type, the letters of omitempty (e) and omitzero (z) if the field is
// left out at times, and, if there are any, the embedded structs that lead to it.
type field []string

// structs has the fields of each definition in the order in which Go writes them.
type structs map[string][]field

func main() {
	found := structs{}
	for _, known := range kinds.Scheme().AllKnownTypes() {
		found.visit(known)
	}
	found.visit(reflect.TypeFor[metav1.Status]())
	found.visit(reflect.TypeFor[metav1.DeleteOptions]())
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

func (s structs) visit(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		s.visit(t.Elem())
	case reflect.Struct:
		name := definition(t)
		if _, known := s[name]; known || t.Name() == "" || writesItself(t) {
			return
		}
		s[name] = nil
		s[name] = s.fields(t, "")
	}
}

func (s structs) fields(t reflect.Type, inside string) []field {
	found := []field{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" && f.Anonymous {
			found = append(found, s.fields(f.Type, inside+f.Name+".")...)
			continue
		}
		omit := ""
		for _, option := range strings.Split(options, ",") {
			if option == "omitempty" || option == "omitzero" {
				omit += option[4:5]
			}
		}
		made := field{name, shown(f.Type), omit}
		if inside != "" {
			made = append(made, inside)
		}
		found = append(found, made)
		s.visit(f.Type)
	}
	return found
}

// shown is the type as Go's decoder names it, with what is behind a name of a simple type.
func shown(t reflect.Type) string {
	text := t.String()
	if under := t.Kind().String(); t.Kind() != reflect.Struct && t.Name() != "" && under != text {
		return text + "=" + under
	}
	return text
}

func writesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// definition is the name of the type in the server's OpenAPI.
func definition(t reflect.Type) string {
	path := strings.ReplaceAll(t.PkgPath(), "/", ".")
	return strings.Replace(path, "k8s.io", "io.k8s", 1) + "." + t.Name()
}
