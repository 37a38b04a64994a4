// Command validation says what a Kubernetes API server would answer to
// a create or an update, without being one. Its argument sets feature gates.
//
// It reads one case per line on standard input and writes one answer per line. A case goes through
// what the generic registry does between the request body and etcd: decode, default, name and
// system fields, the strategy's preparation, and validation. Admission plugins and authorization
// are left out: every permission is granted.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
)

// question is one line of input.
type question struct {
	Object          json.RawMessage   `json:"object"`
	Old             json.RawMessage   `json:"old,omitempty"`
	Subresource     string            `json:"subresource,omitempty"`
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	Echo            bool              `json:"echo,omitempty"`
}

// answer is one line of output. At most one of Causes, BadRequest and Panic says why not.
type answer struct {
	Causes     []cause         `json:"causes"`
	BadRequest string          `json:"badRequest,omitempty"`
	Panic      string          `json:"panic,omitempty"`
	Warnings   []string        `json:"warnings,omitempty"`
	Stored     json.RawMessage `json:"stored,omitempty"`
}

type cause struct {
	Reason  string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// namespaces knows every namespace; each carries the labels of the current case.
type namespaces struct {
	typedcorev1.NamespaceInterface
	labels map[string]string
}

func (n namespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: n.labels}}, nil
}

var resources = map[string]string{
	"ResourceSlice":         "resourceslices",
	"ResourceClaim":         "resourceclaims",
	"ResourceClaimTemplate": "resourceclaimtemplates",
	"DeviceClass":           "deviceclasses",
	"DeviceTaintRule":       "devicetaintrules",
}

func strategyFor(kind, subresource string, labels map[string]string) (strategy, error) {
	client := namespaces{labels: labels}
	claims := resourceclaim.NewStrategy(client, authorizerfactory.NewAlwaysAllowAuthorizer())
	switch kind + "/" + subresource {
	case "ResourceSlice/":
		return resourceslice.Strategy, nil
	case "ResourceClaim/":
		return claims, nil
	case "ResourceClaim/status":
		return resourceclaim.NewStatusStrategy(claims), nil
	case "ResourceClaimTemplate/":
		return resourceclaimtemplate.NewStrategy(client), nil
	case "DeviceClass/":
		return deviceclass.Strategy, nil
	case "DeviceTaintRule/":
		return devicetaintrule.Strategy, nil
	case "DeviceTaintRule/status":
		return devicetaintrule.StatusStrategy, nil
	}
	return nil, fmt.Errorf("no strategy for %s/%s", kind, subresource)
}

func decode(body []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, nil, errors.New("no JSON serializer")
	}
	return legacyscheme.Codecs.DecoderToVersion(info.Serializer, runtime.InternalGroupVersioner).Decode(body, nil, nil)
}

// fill does what the store does to a new object before its strategy sees it. The name that the
// server would make up at random gets a fixed ending.
func fill(object metav1.Object) {
	rest.FillObjectMetaSystemFields(object)
	if base := object.GetGenerateName(); len(base) > 0 && len(object.GetName()) == 0 {
		object.SetName(base[:min(len(base), 58)] + "xxxxx")
	}
}

func contextFor(gvk *schema.GroupVersionKind, object metav1.Object, q question) context.Context {
	namespace := object.GetNamespace()
	if len(namespace) == 0 {
		namespace = metav1.NamespaceDefault
	}
	verb := "create"
	if q.Old != nil {
		verb = "update"
	}
	ctx := request.WithNamespace(context.Background(), namespace)
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "oracle"})
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: gvk.Group, APIVersion: gvk.Version,
		Resource: resources[gvk.Kind], Subresource: q.Subresource, Namespace: namespace, Name: object.GetName(),
	})
}

func judge(q question) (result answer) {
	defer func() {
		if recovered := recover(); recovered != nil {
			result = answer{Panic: fmt.Sprint(recovered)}
		}
	}()
	object, gvk, err := decode(q.Object)
	if err != nil {
		return answer{BadRequest: err.Error()}
	}
	if pod, ok := object.(*core.Pod); ok {
		return judgePod(pod)
	}
	chosen, err := strategyFor(gvk.Kind, q.Subresource, q.NamespaceLabels)
	if err != nil {
		return answer{BadRequest: err.Error()}
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return answer{BadRequest: err.Error()}
	}
	ctx := contextFor(gvk, accessor, q)
	if q.Old == nil {
		fill(accessor)
		err = rest.BeforeCreate(chosen, ctx, object)
		result.Warnings = chosen.WarningsOnCreate(ctx, object)
	} else {
		err = update(ctx, chosen, object, q)
	}
	result.add(err)
	if q.Echo && err == nil {
		result.store(object, gvk)
	}
	return result
}

func update(ctx context.Context, chosen strategy, object runtime.Object, q question) error {
	old, _, err := decode(q.Old)
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	oldAccessor, err := meta.Accessor(old)
	if err != nil {
		return err
	}
	if len(accessor.GetResourceVersion()) == 0 {
		// The store turns an update without a version into one of whatever is stored.
		accessor.SetResourceVersion(oldAccessor.GetResourceVersion())
	}
	return rest.BeforeUpdate(chosen, ctx, object, old)
}

func judgePod(pod *core.Pod) (result answer) {
	fill(pod)
	if len(pod.Namespace) == 0 {
		pod.Namespace = metav1.NamespaceDefault
	}
	podutil.DropDisabledPodFields(pod, nil)
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
	errs := corevalidation.ValidatePodCreate(pod, options)
	result.add(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, errs))
	return result
}

func (a *answer) add(err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonInvalid:
		for _, c := range status.Status().Details.Causes {
			a.Causes = append(a.Causes, cause{Reason: string(c.Type), Field: c.Field, Message: c.Message})
		}
	default:
		a.BadRequest = err.Error()
	}
}

func (a *answer) store(object runtime.Object, gvk *schema.GroupVersionKind) {
	encoded, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(gvk.GroupVersion()), object)
	if err != nil {
		a.BadRequest = err.Error()
		return
	}
	a.Stored = encoded
}

func run(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriter(out)
	decoder, encoder := json.NewDecoder(reader), json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		var q question
		if err := decoder.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := encoder.Encode(judge(q)); err != nil {
			return err
		}
		// The one who asks may wait for this answer before asking again.
		if err := writer.Flush(); err != nil {
			return err
		}
	}
}

func main() {
	// Feature gates that are not at their default: A=true,B=false.
	if len(os.Args) > 1 {
		if err := utilfeature.DefaultMutableFeatureGate.Set(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	// Differences between handwritten and declared checks are logged.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
