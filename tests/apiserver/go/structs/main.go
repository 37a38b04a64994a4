// Prints how Go writes every struct of the served kinds: for each definition the JSON names of
// its fields, their Go types, and when they are left out.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// field is a JSON name, a Go type, and the letters of omitempty (e) and omitzero (z) if the
// field is left out at times.
type field [3]string

// structs has the fields of each definition in the order in which Go writes them.
type structs map[string][]field

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, eventsv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		resourcev1.AddToScheme, resourcev1beta1.AddToScheme, resourcev1beta2.AddToScheme,
		schedulingv1.AddToScheme, schedulingv1alpha2.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	found := structs{}
	for _, known := range scheme.AllKnownTypes() {
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
		s[name] = s.fields(t)
	}
}

func (s structs) fields(t reflect.Type) []field {
	found := []field{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" && f.Anonymous {
			found = append(found, s.fields(f.Type)...)
			continue
		}
		omit := ""
		for _, option := range strings.Split(options, ",") {
			if option == "omitempty" || option == "omitzero" {
				omit += option[4:5]
			}
		}
		found = append(found, field{name, shown(f.Type), omit})
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
