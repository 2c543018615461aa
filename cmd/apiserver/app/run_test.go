package app

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The hub gets only the rest of the start timeout, without the time that the embedded etcd has used.
func TestTheStartIsBoundedAsAWhole(t *testing.T) {
	begin := time.Now()

	err := serve(t.Context(), parse(t, "--etcd-servers=http://127.0.0.1:1"), time.Now().Add(300*time.Millisecond), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "wait for etcd: gave up after 4m0s: no connection to etcd") {
		t.Errorf("got %v", err)
	}

	if took := time.Since(begin); took > startTimeout/2 {
		t.Errorf("it took %s", took)
	}
}

// The process has to end before kubelet kills it, since after a kill nobody would know the reason.
func TestTheProbeWaitsLongerThanTheStart(t *testing.T) {
	manifest, err := os.ReadFile("../../../artifacts/kustomize/base/apiserver.yaml")
	if err != nil {
		t.Fatal(err)
	}

	_, probe, found := strings.Cut(string(manifest), "startupProbe:")
	if !found {
		t.Fatal("there is no startupProbe")
	}

	number := func(name string) time.Duration {
		match := regexp.MustCompile(name + `: (\d+)`).FindStringSubmatch(probe)
		if match == nil {
			t.Fatalf("the startupProbe has no %s", name)
		}

		value, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}

		return time.Duration(value)
	}

	const margin = 30 * time.Second
	if allowed := number("periodSeconds") * number("failureThreshold") * time.Second; allowed < startTimeout+margin {
		t.Errorf("the start-up probe allows %s, which is not well above %s", allowed, startTimeout)
	}
}
