package charts_test

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// forbidden is a listener at an address that may not be dialled. It counts the
// connections that reach it, also those on which nothing is ever said.
type forbidden struct {
	listener net.Listener
	accepted atomic.Int32
}

// startForbidden listens at an address of loopback.
func startForbidden(t *testing.T, address string) *forbidden {
	t.Helper()

	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	f := &forbidden{listener: listener}

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			f.accepted.Add(1)
			_ = connection.Close()
		}
	}()

	return f
}

// at is the listener's place under a name.
func (f *forbidden) at(name string) string {
	_, port, _ := net.SplitHostPort(f.listener.Addr().String())

	return net.JoinHostPort(name, port)
}

// wantUntouched fails if any connection was made. One of the test's own comes
// after all that were made before, so that none is still on its way.
func (f *forbidden) wantUntouched(t *testing.T) {
	t.Helper()

	last, err := net.Dial("tcp", f.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	_ = last.SetReadDeadline(time.Now().Add(await.Limit))
	_, _ = last.Read(make([]byte, 1)) // it is closed when it was counted
	_ = last.Close()

	if got := f.accepted.Load() - 1; got != 0 {
		t.Errorf("%d connections were made to an address that may not be dialled", got)
	}
}

// An address that may not be dialled gets no packet: a connection that is closed
// at once tells a service that somebody is there, and whoever asks whether it is.
func TestNothingIsDialledThatIsForbidden(t *testing.T) {
	// Of loopback, only this address may be dialled.
	const home, elsewhere = "127.0.0.1", "127.0.0.2"

	for name, arrange := range map[string]func(*chartserver.Repository, *forbidden) charts.Source{
		"repository": func(_ *chartserver.Repository, f *forbidden) charts.Source {
			return charts.Source{Repository: "http://" + f.at(elsewhere), Chart: "demo"}
		},
		"repository by an IPv6 form of the address": func(_ *chartserver.Repository, f *forbidden) charts.Source {
			return charts.Source{Repository: "http://" + f.at("::ffff:"+elsewhere), Chart: "demo"}
		},
		"redirect": func(r *chartserver.Repository, f *forbidden) charts.Source {
			r.Handle("/index.yaml", leadTo("https://"+f.at(elsewhere)))

			return charts.Source{Repository: r.URL(), Chart: "demo"}
		},
		"archive": func(r *chartserver.Repository, f *forbidden) charts.Source {
			r.AddEntry("demo", "1.0.0", "https://"+f.at(elsewhere)+"/demo.tgz", strings.Repeat("0", 64))

			return charts.Source{Repository: r.URL(), Chart: "demo"}
		},
		"provenance file": func(r *chartserver.Repository, f *forbidden) charts.Source {
			r.Add(chartserver.ConfigMapChart("demo", "1.0.0"))
			r.Handle("/demo-1.0.0.tgz.prov", leadTo("https://"+f.at(elsewhere)))

			return charts.Source{Repository: r.URL(), Chart: "demo", Keyring: chartserver.NewSigner("signer").PublicKey()}
		},
		"registry": func(_ *chartserver.Repository, f *forbidden) charts.Source {
			return charts.Source{Chart: "oci://" + f.at(elsewhere) + "/demo", Version: "1.0.0"}
		},
		"redirect of a registry": func(r *chartserver.Repository, f *forbidden) charts.Source {
			r.Handle("/v2/demo/manifests/1.0.0", leadTo("https://"+f.at(elsewhere)))

			return charts.Source{Chart: "oci://" + r.Host() + "/demo", Version: "1.0.0"}
		},
		"token service of a registry": func(r *chartserver.Repository, f *forbidden) charts.Source {
			r.Handle("/v2/demo/manifests/1.0.0", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+f.at(elsewhere)+`/token",service="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			})

			return charts.Source{Chart: "oci://" + r.Host() + "/demo", Version: "1.0.0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := chartserver.StartTLSRepository()
			t.Cleanup(repository.Close)

			target := startForbidden(t, elsewhere)
			source := arrange(repository, target)
			source.CA = repository.CA()

			_, err := fetch(charts.New(charts.Options{Renderers: renderers, Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix(home + "/32")}}}), source)
			target.wantUntouched(t)
			wantReason(t, err, charts.ForbiddenAddress, "loopback")
		})
	}
}

// What counts is where a name leads to when it is dialled.
func TestNoNameLeadsToAForbiddenAddress(t *testing.T) {
	for name, source := range map[string]func(place string) charts.Source{
		"repository": func(place string) charts.Source { return charts.Source{Repository: "http://" + place, Chart: "demo"} },
		"registry":   func(place string) charts.Source { return charts.Source{Chart: "oci://" + place + "/demo"} },
	} {
		t.Run(name, func(t *testing.T) {
			target := startForbidden(t, "127.0.0.1")

			_, err := fetch(charts.New(charts.Options{Renderers: renderers}), source(target.at("localhost")))
			target.wantUntouched(t)
			wantReason(t, err, charts.ForbiddenAddress, "loopback")
		})
	}
}

func leadTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, location, http.StatusFound)
	}
}
