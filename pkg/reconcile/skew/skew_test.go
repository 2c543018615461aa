package skew_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
)

func TestClock(t *testing.T) {
	for name, test := range map[string]struct {
		off  time.Duration
		date string // instead of the time
		want time.Duration
	}{
		"the same time":         {},
		"a second off":          {off: -900 * time.Millisecond},
		"an hour ahead":         {off: time.Hour, want: time.Hour},
		"an hour behind":        {off: -time.Hour, want: -time.Hour},
		"not a time":            {date: "tomorrow"},
		"no time in the answer": {date: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				switch test.date {
				case "":
					w.Header().Set("Date", time.Now().Add(test.off).UTC().Format(http.TimeFormat))
				case "-":
					w.Header()["Date"] = nil
				default:
					w.Header().Set("Date", test.date)
				}
			}))
			defer server.Close()

			clock := &skew.Clock{}
			client := &http.Client{Transport: clock.Wrap(http.DefaultTransport)}

			response, err := client.Get(server.URL + "/apis/omni.texashpc.com/v1alpha1/omniclusters")
			if err != nil {
				t.Fatal(err)
			}

			_ = response.Body.Close()

			// The answer has whole seconds.
			if off := (clock.Ahead() - test.want).Abs(); off > 2*time.Second {
				t.Errorf("ahead by %s, want %s", clock.Ahead(), test.want)
			}

			if test.want == 0 && clock.Ahead() != 0 && test.off == 0 {
				t.Errorf("ahead by %s", clock.Ahead())
			}
		})
	}
}

// kube-apiserver and omni-apiserver may run on nodes whose clocks differ.
func TestTwoServers(t *testing.T) {
	off := map[string]time.Duration{"/proxied/apis/omni.texashpc.com/v1alpha1/omniclusters": time.Hour, "/proxied/api/v1/secrets": -time.Hour}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(off[r.URL.Path]).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()

	clock := &skew.Clock{}
	client := &http.Client{Transport: clock.Wrap(http.DefaultTransport)}

	for path := range off {
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}

		_ = response.Body.Close()
	}

	if clock.Ahead() < 59*time.Minute || clock.HubAhead() > -59*time.Minute {
		t.Errorf("omni-apiserver is ahead by %s, kube-apiserver by %s", clock.Ahead(), clock.HubAhead())
	}
}
