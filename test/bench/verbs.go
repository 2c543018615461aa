package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// side is one of the two APIs that are compared.
type side struct {
	name  string // in results
	group string
}

// ours comes first wherever both are listed.
func sides() [2]side {
	return [2]side{{"ours", ourGroup}, {"crd", crdGroup}}
}

func (s side) path(name string) string {
	path := resourcePath(s.group, objectsNamespace, "omniclusters")
	if name != "" {
		path += "/" + name
	}

	return path
}

// verb is a request that is measured.
type verb struct {
	name string
	aim  *aim // of the ratio of rates
	// count is the number of requests in a round, clients how many are made at once.
	count, clients int
	// request makes the i-th request of a round.
	request func(client rest.Interface, s side, round, i int) *rest.Request
}

func objectName(i int) string { return fmt.Sprintf("object-%05d", i) }

// verbs are the measured requests in the order in which they are possible.
func verbs(s settings) []verb {
	each := func(name string, bound *aim, request func(rest.Interface, side, int, int) *rest.Request) verb {
		return verb{name: name, aim: bound, count: s.Objects, clients: s.Clients, request: request}
	}

	list := func(client rest.Interface, api side, _, _ int) *rest.Request {
		return client.Get().AbsPath(api.path(""))
	}

	return []verb{
		each("create", above(0.9), func(client rest.Interface, api side, round, i int) *rest.Request {
			return client.Post().AbsPath(api.path("")).Body(encode(clusterObject(api.group, objectName(i), label("c", round))))
		}),
		each("get", above(0.7), func(client rest.Interface, api side, _, i int) *rest.Request {
			return client.Get().AbsPath(api.path(objectName(i)))
		}),
		each("merge patch", above(0.9), func(client rest.Interface, api side, round, i int) *rest.Request {
			return mergePatch(client, api.path(objectName(i)), labelPatch(label("m", round)))
		}),
		each("server-side apply", above(0.9), func(client rest.Interface, api side, round, i int) *rest.Request {
			return apply(client, api.path(objectName(i)), encode(clusterObject(api.group, objectName(i), label("a", round))))
		}),
		each("status patch", above(0.9), func(client rest.Interface, api side, round, i int) *rest.Request {
			return mergePatch(client, api.path(objectName(i))+"/status", statusPatch(label("s", round)))
		}),
		{name: "list", aim: above(1.2), count: s.Lists, clients: 1, request: list},
		{name: "list by all clients", count: s.ConcurrentLists, clients: s.Clients, request: list},
		each("delete", above(0.9), func(client rest.Interface, api side, _, i int) *rest.Request {
			return client.Delete().AbsPath(api.path(objectName(i)))
		}),
	}
}

func label(verb string, round int) string { return fmt.Sprintf("%s%d", verb, round) }

func mergePatch(client rest.Interface, path string, body []byte) *rest.Request {
	return client.Patch(types.MergePatchType).AbsPath(path).Param("fieldManager", fieldManager).Body(body)
}

// apply is a server-side apply. It takes over what another request set before.
func apply(client rest.Interface, path string, body []byte) *rest.Request {
	return client.Patch(types.ApplyPatchType).AbsPath(path).
		Param("fieldManager", fieldManager).Param("force", "true").Body(body)
}

// newClients makes clients that share nothing but the user: each has a connection of its own, as
// separate programs have.
func (b *bench) newClients(count int) ([]rest.Interface, error) {
	config, err := b.stack.RESTConfigFor(objectsUser)
	if err != nil {
		return nil, err
	}

	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = "application/json"
	config.WarningHandler = rest.NoWarnings{}

	clients := make([]rest.Interface, count)

	for i := range clients {
		own := rest.CopyConfig(config)
		own.Dial = dialer() // a connection is shared only by those with the same dialer

		if clients[i], err = rest.UnversionedRESTClientFor(own); err != nil {
			return nil, fmt.Errorf("make client: %w", err)
		}
	}

	return clients, nil
}

// mostRetries is how often a request that is told to come again (429, after a second) does so. Most of 32 lists at once are, and
// the ten times of client-go are not enough on a slow machine. The wait is part of what is measured.
const mostRetries = 300

// discard makes the request and reads the answer to its end, without decoding it.
func discard(ctx context.Context, request *rest.Request) error {
	_, err := request.MaxRetries(mostRetries).Do(ctx).Raw()

	return err
}
