// Karpenter's DRA KWOK driver, its controller as it is, in a process that listens on nothing.
//
// Karpenter's own program binds its metrics to every address of the machine; a benchmark must not.
package main

import (
	"log"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/karpenter/dra-kwok-driver/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/dra-kwok-driver/pkg/controllers"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, resourcev1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(known); err != nil {
			return err
		}
	}
	stop := ctrl.SetupSignalHandler()
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  known,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := controllers.NewResourceSliceController(manager.GetClient()).Register(stop, manager); err != nil {
		return err
	}
	return manager.Start(stop)
}
