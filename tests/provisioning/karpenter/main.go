// Karpenter's controllers with its KWOK provider, as they are, in a process that listens on nothing.
//
// Karpenter's own program binds its metrics and its probes to every address of the machine; a test
// must not. The flags are those of Karpenter.
package main

import (
	"context"
	"log"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	stop := injection.WithOptionsOrDie(ctrl.SetupSignalHandler(), options.Injectables...)
	config := ctrl.GetConfigOrDie()
	config.QPS = float32(options.FromContext(stop).KubeClientQPS)
	config.Burst = options.FromContext(stop).KubeClientBurst
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:     metricsserver.Options{BindAddress: "0"},
		BaseContext: func() context.Context { return stop },
	})
	if err != nil {
		return err
	}
	if err := addIndexes(stop, manager.GetFieldIndexer()); err != nil {
		return err
	}
	types, err := kwok.ConstructInstanceTypes(stop)
	if err != nil {
		return err
	}
	wall := clock.RealClock{}
	reads := manager.GetClient()
	overlays := nodeoverlay.NewInstanceTypeStore()
	plain := kwok.NewCloudProvider(stop, reads, types)
	provider := overlay.Decorate(plain, reads, overlays)
	recorder := events.NewRecorder(manager.GetEventRecorderFor("karpenter"))
	cluster := state.NewCluster(wall, reads, provider)
	for _, each := range controllers.NewControllers(
		stop, manager, wall, reads, recorder, provider, plain, cluster, overlays,
	) {
		if err := each.Register(stop, manager); err != nil {
			return err
		}
	}
	return manager.Start(stop)
}

// Karpenter's controllers look objects up by these fields.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	ofClass := func(get func(client.Object) *v1.NodeClassReference, part func(*v1.NodeClassReference) string) client.IndexerFunc {
		return func(each client.Object) []string { return []string{part(get(each))} }
	}
	group := func(ref *v1.NodeClassReference) string { return ref.Group }
	kind := func(ref *v1.NodeClassReference) string { return ref.Kind }
	name := func(ref *v1.NodeClassReference) string { return ref.Name }
	claimClass := func(each client.Object) *v1.NodeClassReference { return each.(*v1.NodeClaim).Spec.NodeClassRef }
	poolClass := func(each client.Object) *v1.NodeClassReference {
		return each.(*v1.NodePool).Spec.Template.Spec.NodeClassRef
	}
	for _, each := range []struct {
		of    client.Object
		field string
		get   client.IndexerFunc
	}{
		{&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }},
		{&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }},
		{&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName}
		}},
		{&v1.NodeClaim{}, "status.providerID", func(o client.Object) []string {
			return []string{o.(*v1.NodeClaim).Status.ProviderID}
		}},
		{&v1.NodeClaim{}, "spec.nodeClassRef.group", ofClass(claimClass, group)},
		{&v1.NodeClaim{}, "spec.nodeClassRef.kind", ofClass(claimClass, kind)},
		{&v1.NodeClaim{}, "spec.nodeClassRef.name", ofClass(claimClass, name)},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.group", ofClass(poolClass, group)},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.kind", ofClass(poolClass, kind)},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.name", ofClass(poolClass, name)},
	} {
		if err := indexer.IndexField(ctx, each.of, each.field, each.get); err != nil {
			return err
		}
	}
	return nil
}
