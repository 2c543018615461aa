package omnisim

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// healthCheckController owns the statuses of health checks. Its name is inferred.
const healthCheckController = "KubernetesHealthCheckStatusController"

// FailHealthCheck makes the last run of a cluster's health check a failed one, with the error and what its job printed. The
// fields and the label were read in the source of 1.11; the simulator runs no jobs.
func (s *Server) FailHealthCheck(cluster, check, reason, output string) error {
	if !s.version.serves(operator.KubernetesHealthCheckStatusType) {
		return errors.New("this version of Omni has no statuses of health checks")
	}

	err := put(context.Background(), s.resources, healthCheckController, operator.NewKubernetesHealthCheckStatus(cluster+"-"+check),
		func(status *operator.KubernetesHealthCheckStatus) {
			status.Metadata().Labels().Set(omni.LabelCluster, cluster)
			*status.TypedSpec() = operator.KubernetesHealthCheckStatusSpec{State: operator.HealthCheckFailed, Error: reason, Output: output}
		})
	if err != nil {
		return fmt.Errorf("fail health check %s of cluster %s: %w", check, cluster, err)
	}

	return nil
}
