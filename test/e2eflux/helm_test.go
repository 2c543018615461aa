package e2eflux

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Flux's own HelmRelease takes the exported kubeconfig as a Kustomization does, without a key.
func TestHelmReleaseOfFlux(t *testing.T) {
	d := newDesk(t)
	hub := d.attach("demo")
	d.applyTo(hub, deployers)
	d.apply(d.connection(), cluster("demo"), set("OmniControlPlane", "demo", "demo", 1), export("access", "demo", "Delete"))
	d.apply(fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {interval: 1h, url: %q}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: settings}
spec:
  interval: 1h
  chart: {spec: {chart: settings, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}
  targetNamespace: apps
  storageNamespace: apps
  releaseName: settings
  install: {createNamespace: true, remediation: {retries: -1}}
  kubeConfig: {secretRef: {name: access}}`, d.charts()))

	d.wait("the release", func() error {
		ready := meta.FindStatusCondition(get[object](d, "helmrelease.helm.toolkit.fluxcd.io", "settings").Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("%+v", ready)
		}

		return nil
	})

	settings, err := hub.Client().CoreV1().ConfigMaps("apps").Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || settings.Data["greeting"] != "hello" {
		t.Errorf("the ConfigMap of the chart: %v %v", settings.Data, err)
	}
}
