package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// Of nodes that are equally good the plugin takes any, by the order of a map: asked this often, it
// has taken each of them.
const draws = 200

// victims is who would have to go from one node.
type victims struct {
	// By name, the more important first.
	Pods       []string `json:"pods"`
	Violations int64    `json:"violations"`
}

// preemption is what DefaultPreemption makes of a pod that fits nowhere; nothing is carried out.
type preemption struct {
	Candidates map[string]victims `json:"candidates"`
	// The nodes that it may nominate.
	Nominated []string `json:"nominated"`
	// What the pod is told, if nobody goes.
	Message string `json:"message,omitempty"`
}

// nobodyNominated is a nominator of a cluster where no other pod waits for victims to go.
type nobodyNominated struct{}

func (nobodyNominated) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nobodyNominated) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (nobodyNominated) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (nobodyNominated) NominatedPodsForNode(string) []fwk.PodInfo                     { return nil }

func preempt(
	ctx context.Context,
	scheduler framework.Framework,
	state fwk.CycleState,
	pod *corev1.Pod,
	statuses *framework.NodeToStatus,
	budgets []*policyv1.PodDisruptionBudget,
) (*preemption, error) {
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	plugin, err := defaultpreemption.New(ctx, args, scheduler, feature.Features{})
	if err != nil {
		return nil, err
	}
	result := &preemption{Candidates: map[string]victims{}}
	if eligible, _ := plugin.PodEligibleToPreemptOthers(ctx, pod, nil); !eligible {
		return told(ctx, plugin, state, pod, statuses, result), nil
	}
	nodes, err := statuses.NodesForStatusCode(scheduler.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	// One more than there can be, so that every node is tried.
	enough := int32(len(nodes) + 1)
	candidates, _, err := plugin.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, enough)
	if err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return told(ctx, plugin, state, pod, statuses, result), nil
	}
	for _, each := range candidates {
		found := victims{Violations: each.Victims().NumPDBViolations}
		for _, victim := range each.Victims().Pods {
			found.Pods = append(found.Pods, victim.Name)
		}
		result.Candidates[each.Name()] = found
	}
	taken := map[string]bool{}
	for range draws {
		taken[plugin.Evaluator.SelectCandidate(ctx, candidates).Name()] = true
	}
	for name := range taken {
		result.Nominated = append(result.Nominated, name)
	}
	sorted(result.Nominated)
	return result, nil
}

// told is for a pod in whose favour nobody goes: the plugin itself may run, and says why.
func told(
	ctx context.Context,
	plugin *defaultpreemption.DefaultPreemption,
	state fwk.CycleState,
	pod *corev1.Pod,
	statuses *framework.NodeToStatus,
	result *preemption,
) *preemption {
	_, status := plugin.PostFilter(ctx, state, pod, statuses)
	result.Message = status.Message()
	return result
}
