// Command place says on which nodes kube-scheduler would run a pod, and how it would score them.
//
// It reads one case per line on standard input and writes one answer per line. A case is a cluster
// (nodes, pods with their nodes, namespaces, volumes, workloads) and one pod; the answer is what
// the framework with kube-scheduler's own plugins makes of it: which nodes pass the filters, what
// the others say, and what each score plugin gives, normalised and weighted; where no node passes,
// which pods would have to go from each. Plugins that need a running cluster (devices, limits of
// attached volumes) are left out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// question is one line of input.
type question struct {
	Nodes         []*corev1.Node                  `json:"nodes"`
	Pods          []*corev1.Pod                   `json:"pods"`
	Namespaces    []*corev1.Namespace             `json:"namespaces"`
	Services      []*corev1.Service               `json:"services"`
	Controllers   []*corev1.ReplicationController `json:"replicationControllers"`
	ReplicaSets   []*appsv1.ReplicaSet            `json:"replicaSets"`
	StatefulSets  []*appsv1.StatefulSet           `json:"statefulSets"`
	VolumeClaims  []*corev1.PersistentVolumeClaim `json:"volumeClaims"`
	Volumes       []*corev1.PersistentVolume      `json:"volumes"`
	StorageClass  []*storagev1.StorageClass       `json:"storageClasses"`
	Budgets       []*policyv1.PodDisruptionBudget `json:"budgets"`
	Configuration json.RawMessage                 `json:"configuration"`
	Pod           *corev1.Pod                     `json:"pod"`
}

// answer is one line of output.
type answer struct {
	// What is said of all nodes at once, where no node was asked.
	Unschedulable string `json:"unschedulable,omitempty"`
	// By node: the reasons of the first plugin that refuses.
	Refusals map[string][]string `json:"refusals"`
	// Of these nodes, those that preemption cannot help.
	Unresolvable []string `json:"unresolvable"`
	// By node that passes, then by plugin: normalised and weighted; plugins that skip are absent.
	Scores map[string]map[string]int64 `json:"scores"`
	// What the pod would be told if no node passes.
	Message string `json:"message,omitempty"`
	// And then who would go for it, if the filters were asked.
	Preemption *preemption `json:"preemption,omitempty"`
	Error      string      `json:"error,omitempty"`
	Panic      string      `json:"panic,omitempty"`
}

var leftOut = map[string]bool{
	names.DynamicResources:     true,
	names.NodeVolumeLimits:     true,
	names.VolumeRestrictions:   true,
	names.DefaultPreemption:    true,
	names.NodeDeclaredFeatures: true,
}

// profile is the first one of the configuration, or that of kube-scheduler without one.
func profile(q *question) (*config.KubeSchedulerProfile, error) {
	var found *config.KubeSchedulerConfiguration
	if len(q.Configuration) == 0 {
		defaults, err := latest.Default()
		if err != nil {
			return nil, err
		}
		found = defaults
	} else {
		object, _, err := scheme.Codecs.UniversalDecoder().Decode(q.Configuration, nil, nil)
		if err != nil {
			return nil, err
		}
		found = object.(*config.KubeSchedulerConfiguration)
	}
	chosen := &found.Profiles[0]
	kept := chosen.Plugins.MultiPoint.Enabled[:0]
	for _, each := range chosen.Plugins.MultiPoint.Enabled {
		if !leftOut[each.Name] {
			kept = append(kept, each)
		}
	}
	chosen.Plugins.MultiPoint.Enabled = kept
	return chosen, nil
}

func add[T any](store cache.Indexer, objects []T) error {
	for _, each := range objects {
		if err := store.Add(each); err != nil {
			return err
		}
	}
	return nil
}

// factory has the objects of the case in its stores; its informers never run.
func factory(client *fake.Clientset, q *question) (informers.SharedInformerFactory, error) {
	made := informers.NewSharedInformerFactory(client, 0)
	core, apps := made.Core().V1(), made.Apps().V1()
	for _, err := range []error{
		add(core.Namespaces().Informer().GetIndexer(), q.Namespaces),
		add(core.Pods().Informer().GetIndexer(), []*corev1.Pod{q.Pod}),
		add(made.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer(), q.Budgets),
		add(core.Services().Informer().GetIndexer(), q.Services),
		add(core.ReplicationControllers().Informer().GetIndexer(), q.Controllers),
		add(apps.ReplicaSets().Informer().GetIndexer(), q.ReplicaSets),
		add(apps.StatefulSets().Informer().GetIndexer(), q.StatefulSets),
		add(core.PersistentVolumeClaims().Informer().GetIndexer(), q.VolumeClaims),
		add(core.PersistentVolumes().Informer().GetIndexer(), q.Volumes),
		add(made.Storage().V1().StorageClasses().Informer().GetIndexer(), q.StorageClass),
	} {
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

func frameworkFor(ctx context.Context, q *question) (framework.Framework, *schedulercache.Snapshot, error) {
	chosen, err := profile(q)
	if err != nil {
		return nil, nil, err
	}
	client := fake.NewClientset()
	made, err := factory(client, q)
	if err != nil {
		return nil, nil, err
	}
	snapshot := schedulercache.NewSnapshot(q.Pods, q.Nodes)
	found, err := runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), chosen,
		runtime.WithClientSet(client),
		runtime.WithInformerFactory(made),
		runtime.WithSnapshotSharedLister(snapshot),
		runtime.WithMutableSnapshotLister(snapshot),
		runtime.WithPodNominator(nobodyNominated{}),
		runtime.WithParallelism(1),
		runtime.WithLogger(klog.FromContext(ctx)),
	)
	return found, snapshot, err
}

func asked(q *question) (result answer) {
	defer func() {
		if recovered := recover(); recovered != nil {
			result = answer{Panic: fmt.Sprint(recovered)}
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	scheduler, snapshot, err := frameworkFor(ctx, q)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return decide(ctx, scheduler, snapshot, q)
}

func decide(ctx context.Context, scheduler framework.Framework, snapshot *schedulercache.Snapshot, q *question) answer {
	pod := q.Pod
	result := answer{Refusals: map[string][]string{}, Scores: map[string]map[string]int64{}}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return answer{Error: err.Error()}
	}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	failure := &framework.FitError{Pod: pod, NumAllNodes: len(nodes)}
	state := framework.NewCycleState()
	only, status, by := scheduler.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return answer{Error: status.AsError().Error()}
		}
		result.Unschedulable = status.Message()
		diagnosis.PreFilterMsg = status.Message()
		failure.Diagnosis = diagnosis
		result.Message = failure.Error()
		return result
	}
	var feasible []fwk.NodeInfo
	for _, each := range nodes {
		name := each.Node().Name
		if !only.AllNodes() && !only.NodeNames.Has(name) {
			result.Refusals[name] = []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sorted(by.UnsortedList()))}
			diagnosis.NodeToStatus.Set(name, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, result.Refusals[name]...))
			result.Unresolvable = append(result.Unresolvable, name)
		} else if status := scheduler.RunFilterPlugins(ctx, state, pod, each); status.IsSuccess() {
			feasible = append(feasible, each)
		} else if status.IsRejected() {
			result.Refusals[name] = status.Reasons()
			diagnosis.NodeToStatus.Set(name, status)
			if status.Code() == fwk.UnschedulableAndUnresolvable {
				result.Unresolvable = append(result.Unresolvable, name)
			}
		} else {
			return answer{Error: status.AsError().Error()}
		}
	}
	sort.Strings(result.Unresolvable)
	if len(feasible) == 0 {
		failure.Diagnosis = diagnosis
		result.Message = failure.Error()
		result.Preemption, err = preempt(ctx, scheduler, state, pod, diagnosis.NodeToStatus, q.Budgets)
		if err != nil {
			return answer{Error: err.Error()}
		}
		return result
	}
	return scored(ctx, scheduler, state, pod, feasible, result)
}

func scored(ctx context.Context, scheduler framework.Framework, state fwk.CycleState, pod *corev1.Pod, feasible []fwk.NodeInfo, result answer) answer {
	if status := scheduler.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return answer{Error: status.AsError().Error()}
	}
	scores, status := scheduler.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return answer{Error: status.AsError().Error()}
	}
	for _, each := range scores {
		byPlugin := map[string]int64{}
		for _, score := range each.Scores {
			byPlugin[score.Name] = score.Score
		}
		result.Scores[each.Name] = byPlugin
	}
	return result
}

func sorted(texts []string) []string {
	sort.Strings(texts)
	return texts
}

func run(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return nil
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("%w in case %s", err, line)
		}
		if err := encoder.Encode(asked(&q)); err != nil {
			return err
		}
		// The one who asks may wait for this answer before asking again.
		if err := writer.Flush(); err != nil {
			return err
		}
	}
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
