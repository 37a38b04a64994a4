// Writes random objects of every kind as Go's clients write them: as JSON, and as protobuf.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"dryrack.dev/apiserver/internal/kinds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

func main() {
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	rounds, _ := strconv.Atoi(os.Args[2])
	scheme := kinds.Scheme()
	writer := protobuf.NewSerializer(scheme, scheme)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	filler := randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.4).NumElements(1, 2).
		MaxDepth(12).Funcs(special()...)
	for range rounds {
		for _, kind := range objects(scheme) {
			write(out, scheme, writer, filler, kind)
		}
	}
}

func objects(scheme *runtime.Scheme) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for kind, of := range scheme.AllKnownTypes() {
		isOurs := strings.HasPrefix(of.PkgPath(), "k8s.io/api")
		isObject := isOurs && kind.Version != runtime.APIVersionInternal
		isMeta := strings.Contains(of.PkgPath(), "/meta/") && kind.Kind != "DeleteOptions"
		if isObject && !isMeta && !strings.HasSuffix(kind.Kind, "List") &&
			!strings.HasSuffix(kind.Kind, "Options") {
			found = append(found, kind)
		}
	}
	sort.Slice(found, func(a, b int) bool { return found[a].String() < found[b].String() })
	return found
}

func write(
	out *bufio.Writer, scheme *runtime.Scheme, writer runtime.Encoder, filler *randfill.Filler,
	kind schema.GroupVersionKind,
) {
	object, err := scheme.New(kind)
	if err != nil {
		panic(err)
	}
	filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var wire strings.Builder
	if err := writer.Encode(object, &wire); err != nil {
		panic(err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(wire.String()))
	fmt.Fprintf(out, "{\"json\":%s,\"wire\":%q}\n", text, encoded)
}

func special() []any {
	return []any{
		func(value *metav1.Time, c randfill.Continue) {
			*value = metav1.NewTime(time.Unix(c.Int63n(4_000_000_000), 0).UTC())
		},
		func(value *metav1.MicroTime, c randfill.Continue) {
			*value = metav1.NewMicroTime(time.UnixMicro(c.Int63n(4_000_000_000_000_000)).UTC())
		},
		func(value *resource.Quantity, c randfill.Continue) {
			*value = *resource.NewMilliQuantity(c.Int63n(1_000_000), resource.DecimalSI)
		},
		func(value *intstr.IntOrString, c randfill.Continue) {
			if c.Bool() {
				*value = intstr.FromInt32(c.Int31())
			} else {
				*value = intstr.FromString(c.String(0))
			}
		},
		// Neither is on the wire: the kind of a part, and whether bytes are empty or not there.
		func(value *metav1.TypeMeta, c randfill.Continue) {},
		func(value *[]byte, c randfill.Continue) { *value = []byte(c.String(0)) },
		func(value *runtime.RawExtension, c randfill.Continue) { value.Raw = anything(c) },
		func(value *apiextensionsv1.JSON, c randfill.Continue) { value.Raw = anything(c) },
		func(value *metav1.FieldsV1, c randfill.Continue) { value.Raw = []byte(`{"f:a":{}}`) },
		func(value *apiextensionsv1.JSONSchemaPropsOrArray, c randfill.Continue) {
			value.Schema = &apiextensionsv1.JSONSchemaProps{Type: c.String(0)}
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrBool, c randfill.Continue) {
			value.Allows = true
			if c.Bool() {
				value.Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
			}
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			value.Property = []string{c.String(0)}
		},
	}
}

func anything(c randfill.Continue) []byte {
	text, _ := json.Marshal(map[string]any{"a": c.String(0), "b": c.Int31(), "c": []bool{true}})
	return text
}
