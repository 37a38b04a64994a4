//go:build !kubernetes36

package kinds

import (
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ofRelease has the versions that not every release has.
var ofRelease = []func(*runtime.Scheme) error{
	resourcev1alpha3.AddToScheme, schedulingv1alpha3.AddToScheme,
	schedulingv1beta1.AddToScheme, storagemigrationv1.AddToScheme,
}
