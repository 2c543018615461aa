package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"
)

const (
	// Of the attack past kube-apiserver.
	directConnections, directStreams, directBody = 400, 100, 250 << 10
	// Of the attack through it.
	slowBodies, slowBody, slowUsers = 600, 1 << 20, 12
)

// Bodies beside a store that is full: as many as the port takes past kube-apiserver, from somebody without a certificate of the front
// proxy, and slow ones through it, of users whom priority and fairness lets pass. Each is read or refused within its bounds, and another
// tenant is served meanwhile.
func TestAttackBodies(t *testing.T) {
	attackOnly(t)

	hub := startAttacked(t)
	well := fleetIn(spaceOn(t, hub, "well"))
	tenant := tenantOn(t, hub)

	well.demandOne(0)
	tenant.fillNamespace()

	for _, attack := range []struct {
		name, before string
		run          func(context.Context, *attacker)
	}{
		{"400 connections past kube-apiserver with 100 bodies of 250 KB each, beside a full store", "934 MiB with an empty store", floodDirectly},
		{"600 bodies of 1 MiB that do not end, beside a full store", "620 MiB more than the store", sendSlowly},
	} {
		t.Run(attack.name, func(t *testing.T) {
			check := watchPrograms(t, hub)
			times := watchRequests(t, well.in(t))

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			attack.run(ctx, tenant.in(t))
			times()

			// A write, too.
			well.in(t).run("annotate", "--overwrite", "omnicluster", demanded(0), "attacked="+fmt.Sprint(len(attack.name)))
			check(attack.name, attack.before)
		})
	}
}

// floodDirectly opens connections to omni-apiserver's own port for half a minute, and sends bodies with tokens that nobody has issued.
func floodDirectly(ctx context.Context, a *attacker) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.stack().Hub.CA())

	address := strings.TrimPrefix(a.stack().OmniAPIServer.URL(), "https://")
	body := bytes.Repeat([]byte(" "), directBody)

	var flooding sync.WaitGroup
	defer flooding.Wait()

	for i := range directConnections {
		flooding.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				floodOnce(ctx, roots, address, fmt.Sprintf("random-%d-%d", i, n), body)

				time.Sleep(time.Second)
			}
		})
	}
}

// floodOnce is one connection with all of its streams.
func floodOnce(ctx context.Context, roots *x509.CertPool, address, token string, body []byte) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}}

	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer raw.Close()

	connection, err := (&http2.Transport{}).NewClientConn(raw) //nolint:staticcheck // the other one dials itself
	if err != nil {
		return
	}

	var streams sync.WaitGroup
	for i := range directStreams {
		streams.Go(func() {
			// The last byte does not come, so that the body is held for as long as somebody wants it.
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+clustersPath, &stalledBody{bytes.NewReader(body), ctx.Done()})
			if err != nil {
				return
			}

			request.ContentLength = directBody + 1
			request.Header.Set("Authorization", fmt.Sprintf("Bearer %s-%d", token, i))
			request.Header.Set("Content-Type", "application/json")

			if response, err := connection.RoundTrip(request); err == nil {
				_ = response.Body.Close()
			}
		})
	}

	streams.Wait()
}

// stalledBody is a body that does not end before the attack does.
type stalledBody struct {
	io.Reader

	ended <-chan struct{}
}

func (s *stalledBody) Read(into []byte) (int, error) {
	n, err := s.Reader.Read(into)
	if n > 0 {
		return n, nil
	}

	<-s.ended

	return 0, err
}

// Close implements io.Closer.
func (s *stalledBody) Close() error { return nil }

// sendSlowly sends bodies through kube-apiserver that have all but their last byte. A sender whose body is cut is not answered, for
// kube-apiserver waits for the rest of it, so what shows is that whole bodies of another user are read again meanwhile.
func sendSlowly(ctx context.Context, a *attacker) {
	ctx, cancel := context.WithCancel(ctx)

	var sending sync.WaitGroup

	defer sending.Wait()
	defer cancel()

	for user := range slowUsers {
		config := must(a.stack().RESTConfigFor(fmt.Sprintf("slow-%d", user), "system:masters"))(a.t)
		client := must(rest.HTTPClientFor(config))(a.t)

		for range slowBodies / slowUsers {
			sending.Go(func() {
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+clustersPath,
					&stalledBody{strings.NewReader(strings.Repeat(" ", slowBody-1)), ctx.Done()})
				if err != nil {
					return
				}

				request.ContentLength = slowBody
				request.Header.Set("Content-Type", "application/json")

				if response, err := client.Do(request); err == nil {
					_ = response.Body.Close()
				}
			})
		}
	}

	config := must(a.stack().RESTConfigFor("whole", "system:masters"))(a.t)
	refused, read := 0, false

	for ctx.Err() == nil {
		status, _ := a.sendAs(config, http.MethodPost, clustersPath, "application/json", strings.Repeat(" ", slowBody))
		if status == http.StatusTooManyRequests {
			refused++
		} else if refused > 0 {
			read = status == http.StatusBadRequest // of nothing but spaces

			break
		}
	}

	if !read {
		a.t.Errorf("a whole body was not read after slow ones had been cut; it was refused %d times", refused)
	}
}
