//go:build kubernetes36

package kinds

import (
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime"
)

// ofRelease has the versions that not every release has.
var ofRelease = []func(*runtime.Scheme) error{schedulingv1alpha2.AddToScheme}
