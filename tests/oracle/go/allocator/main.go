// Command allocator answers what Kubernetes' own device allocator answers.
//
// It reads one case per line on standard input and writes one answer per line, in order, on
// standard output. A case is a JSON object: features, classes, slices, claims, node and what
// is in use already, plus timeoutSeconds (default 10) and runs (default 1; the fastest run is
// the one reported). The answer has results when the claims were allocated, error when they
// were not because of one, timeout or panic when the allocator did not end by itself, and
// none of these when they do not fit on the node.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"dryrack.dev/oracle/internal/clock"
	"dryrack.dev/oracle/internal/lines"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// As many expressions as the scheduler keeps compiled would let a stream of generated cases
// compile again and again; this many never do within one stream.
const expressionsKept = 100_000

type deviceInUse struct {
	Driver   string                                         `json:"driver"`
	Pool     string                                         `json:"pool"`
	Device   string                                         `json:"device"`
	ShareID  *types.UID                                     `json:"shareID"`
	Consumed map[resourcev1.QualifiedName]resource.Quantity `json:"consumed"`
}

func (d deviceInUse) id() structured.DeviceID {
	return structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
}

type question struct {
	Features               []string                    `json:"features"`
	Classes                classes                     `json:"classes"`
	Slices                 []*resourcev1.ResourceSlice `json:"slices"`
	Claims                 []*resourcev1.ResourceClaim `json:"claims"`
	Node                   *corev1.Node                `json:"node"`
	AllocatedDevices       []deviceInUse               `json:"allocatedDevices"`
	AllocatedSharedDevices []deviceInUse               `json:"allocatedSharedDevices"`
	AllocatedCapacity      []deviceInUse               `json:"allocatedCapacity"`
	TimeoutSeconds         float64                     `json:"timeoutSeconds"`
	Runs                   int                         `json:"runs"`
}

type answer struct {
	Results          []resourcev1.AllocationResult `json:"results,omitempty"`
	Error            string                        `json:"error,omitempty"`
	Fatal            bool                          `json:"fatal,omitempty"`
	Timeout          bool                          `json:"timeout,omitempty"`
	Panic            string                        `json:"panic,omitempty"`
	AllocateOneCalls int64                         `json:"allocateOneCalls"`
	Nanos            int64                         `json:"nanos"`
}

// classes finds a device class as the scheduler's lister does, down to the error's text.
type classes []*resourcev1.DeviceClass

func (c classes) List() ([]*resourcev1.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclass"), name)
}

func features(names []string) (structured.Features, error) {
	var enabled structured.Features
	flags := reflect.ValueOf(&enabled).Elem()
	for _, name := range names {
		flag := flags.FieldByName(name)
		if !flag.IsValid() {
			return enabled, fmt.Errorf("no feature %q in this release", name)
		}
		flag.SetBool(true)
	}
	return enabled, nil
}

func inUse(q question) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, device := range q.AllocatedDevices {
		state.AllocatedDevices.Insert(device.id())
	}
	for _, device := range q.AllocatedSharedDevices {
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(device.id(), device.ShareID))
	}
	for _, device := range q.AllocatedCapacity {
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(device.id(), device.Consumed))
	}
	return state
}

// calls reads how many steps the search took. The interface that has it is internal to the
// upstream module, so it cannot be named here.
func calls(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return 0
	}
	return method.Call(nil)[0].FieldByName("NumAllocateOneInvocations").Int()
}

type oracle struct {
	caches map[dracel.Features]*dracel.Cache
}

func (o *oracle) cache(enabled structured.Features) *dracel.Cache {
	key := dracel.Features{
		EnableConsumableCapacity: enabled.ConsumableCapacity,
		EnableListTypeAttributes: enabled.ListTypeAttributes,
	}
	if o.caches[key] == nil {
		o.caches[key] = dracel.NewCache(expressionsKept, key)
	}
	return o.caches[key]
}

func (o *oracle) allocate(q question, enabled structured.Features, timeout time.Duration) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	defer func() {
		if problem := recover(); problem != nil {
			a = answer{Panic: fmt.Sprint(problem)}
		}
	}()
	state, cache := inUse(q), o.cache(enabled)
	var allocator structured.Allocator
	var err error
	a.Nanos = clock.Measure(func() {
		allocator, err = structured.NewAllocator(ctx, enabled, state, q.Classes, q.Slices, cache)
		if err == nil {
			a.Results, err = allocator.Allocate(ctx, q.Node, q.Claims)
		}
	}).Nanoseconds()
	if allocator != nil {
		a.AllocateOneCalls = calls(allocator)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		a.Timeout = true
	case err != nil:
		a.Error = err.Error()
		a.Fatal = !errors.Is(err, structured.ErrFailedAllocationOnNode)
	}
	return a
}

func (o *oracle) answer(line []byte) (answer, error) {
	q := question{TimeoutSeconds: 10, Runs: 1}
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{}, err
	}
	enabled, err := features(q.Features)
	if err != nil {
		return answer{}, err
	}
	timeout := time.Duration(q.TimeoutSeconds * float64(time.Second))
	best := o.allocate(q, enabled, timeout)
	for run := 1; run < q.Runs; run++ {
		if again := o.allocate(q, enabled, timeout); again.Nanos < best.Nanos {
			best = again
		}
	}
	return best, nil
}

func main() {
	// The default of this release, and the one variant beyond it for what it does not support.
	structured.EnableAllocators("incubating", "experimental")
	o := &oracle{caches: map[dracel.Features]*dracel.Cache{}}
	lines.Main(o.answer)
}
