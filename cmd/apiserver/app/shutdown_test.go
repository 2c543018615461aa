package app

import (
	"testing"
	"time"
)

func TestShutdownDelay(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want time.Duration
	}{
		{"alone", []string{"--etcd-data-dir=/data"}, 0},
		{"one of several", []string{"--etcd-servers=https://etcd:2379"}, 10 * time.Second},
		{"chosen, alone", []string{"--etcd-data-dir=/data", "--shutdown-delay-duration=3s"}, 3 * time.Second},
		{"chosen, one of several", []string{"--etcd-servers=https://etcd:2379", "--shutdown-delay-duration=25s"}, 25 * time.Second},
		{"off", []string{"--etcd-servers=https://etcd:2379", "--shutdown-delay-duration=0s"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			options := parse(t, tc.args...)
			options.completeShutdown()

			if got := options.Server.ShutdownDelayDuration; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
