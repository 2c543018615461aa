package env

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// etcdRequestTimeout bounds a question to one member.
	etcdRequestTimeout = 5 * time.Second
	// etcdCredentials starts the names of the cluster's files with key material.
	etcdCredentials = "omni-etcd"
	// heartbeat and electionTimeout are of the members: with etcd's own 100 ms and 1 s, a machine that stalls for a second
	// makes them elect a leader, and requests fail that nothing was done to.
	heartbeat, electionTimeout = 500 * time.Millisecond, 5 * time.Second
)

// EtcdCluster is an etcd of several members for omni-apiserver, beside the one that belongs to the hub. Members and
// clients show certificates of an authority of its own to each other. Unlike the hub's it syncs every write to disk.
type EtcdCluster struct {
	// Members in the order of their names, omni-etcd-0 and so on.
	Members []*EtcdMember

	hub    *Hub
	client keyPair
	roots  *x509.CertPool
}

// EtcdMember is one process of an EtcdCluster.
type EtcdMember struct {
	*component

	cluster *EtcdCluster
	address string // of clients: 127.0.0.1:port
	peer    string // of the other members
}

// StartEtcdCluster starts the members and returns when every one of them has a leader. A hub has one at most. The
// context bounds the start only.
func (h *Hub) StartEtcdCluster(ctx context.Context, members int) (*EtcdCluster, error) {
	c := &EtcdCluster{hub: h}
	if err := c.prepare(members); err != nil {
		return nil, fmt.Errorf("start etcd cluster: %w", err)
	}

	// All at once: a member alone has no leader, and is not ready.
	for _, member := range c.Members {
		var err error
		if member.current, err = h.start(member.spec); err != nil {
			return nil, err
		}
	}

	for _, member := range c.Members {
		if err := member.current.eventuallyAlive(ctx, componentTimeout, member.spec.name+" to have a leader", member.ready); err != nil {
			return nil, err
		}
	}

	return c, nil
}

// prepare makes the key material and decides about ports and flags.
func (c *EtcdCluster) prepare(members int) error {
	authority, err := newAuthority("omni-etcd-ca")
	if err != nil {
		return err
	}

	c.roots = x509.NewCertPool()
	c.roots.AddCert(authority.cert)

	if c.client, err = authority.issue(leaf{commonName: "omni-apiserver-etcd-client"}); err != nil {
		return err
	}

	member, err := authority.issue(leaf{commonName: etcdCredentials, addresses: []net.IP{net.ParseIP(loopback)}, both: true})
	if err != nil {
		return err
	}

	creds := c.hub.creds
	if err := errors.Join(
		creds.writeFile(etcdCredentials+"-ca.crt", authority.certPEM),
		creds.writePair(etcdCredentials+"-client", c.client),
		creds.writePair(etcdCredentials, member),
	); err != nil {
		return err
	}

	for i := range members {
		if err := c.addMember(fmt.Sprintf("omni-etcd-%d", i)); err != nil {
			return err
		}
	}

	peers := make([]string, 0, members)
	for _, member := range c.Members {
		peers = append(peers, member.spec.name+"=https://"+member.peer)
	}

	for _, member := range c.Members {
		member.spec.args = c.memberArgs(member, strings.Join(peers, ","))
	}

	return nil
}

func (c *EtcdCluster) addMember(name string) error {
	client, err := c.hub.reservePort()
	if err != nil {
		return err
	}

	peer, err := c.hub.reservePort()
	if err != nil {
		return err
	}

	member := &EtcdMember{cluster: c, address: client.address(), peer: peer.address()}
	member.component = &component{hub: c.hub, ready: member.healthy, spec: processSpec{name: name, binary: c.hub.tools.Etcd, foreign: true}}
	c.Members = append(c.Members, member)

	return nil
}

func (c *EtcdCluster) memberArgs(member *EtcdMember, peers string) []string {
	ca, cert, key := c.hub.creds.file(etcdCredentials+"-ca.crt"), c.hub.creds.file(etcdCredentials+".crt"), c.hub.creds.file(etcdCredentials+".key")

	return []string{
		"--name=" + member.spec.name,
		"--data-dir=" + filepath.Join(c.hub.Dir, member.spec.name),
		"--log-level=warn",
		fmt.Sprintf("--heartbeat-interval=%d", heartbeat.Milliseconds()),
		fmt.Sprintf("--election-timeout=%d", electionTimeout.Milliseconds()),
		"--listen-client-urls=https://" + member.address,
		"--advertise-client-urls=https://" + member.address,
		"--listen-peer-urls=https://" + member.peer,
		"--initial-advertise-peer-urls=https://" + member.peer,
		"--initial-cluster=" + peers,
		"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
		"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
	}
}

// Args returns the flags with which an API server uses the cluster.
func (c *EtcdCluster) Args() []string {
	urls := make([]string, 0, len(c.Members))
	for _, member := range c.Members {
		urls = append(urls, "https://"+member.address)
	}

	return []string{
		"--etcd-servers=" + strings.Join(urls, ","),
		"--etcd-cafile=" + c.hub.creds.file(etcdCredentials+"-ca.crt"),
		"--etcd-certfile=" + c.hub.creds.file(etcdCredentials+"-client.crt"),
		"--etcd-keyfile=" + c.hub.creds.file(etcdCredentials+"-client.key"),
	}
}

// TLS returns a new configuration with which clients connect to the members.
func (c *EtcdCluster) TLS() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.client.cert, c.client.key)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}

	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: c.roots, MinVersion: tls.VersionTLS12}, nil
}

// Leader returns the member that leads. It is an error if the members that run do not agree on one.
func (c *EtcdCluster) Leader(ctx context.Context) (*EtcdMember, error) {
	for _, member := range c.Members {
		if !member.Running() {
			continue
		}

		leads, err := member.leads(ctx)
		if err != nil {
			return nil, err
		}

		if leads {
			return member, nil
		}
	}

	return nil, errors.New("no member of the etcd cluster leads")
}

// Term returns how many elections there were so far, in etcd's count. A difference says that the members elected.
func (c *EtcdCluster) Term(ctx context.Context) (uint64, error) {
	var term uint64

	for _, member := range c.Members {
		if !member.Running() {
			continue
		}

		status, err := member.status(ctx)
		if err != nil {
			return 0, err
		}

		term = max(term, status.RaftTerm)
	}

	return term, nil
}

// healthy returns nil when the member has a leader.
func (m *EtcdMember) healthy(ctx context.Context) error {
	status, err := m.status(ctx)
	if err != nil {
		return err
	}

	if status.Leader == 0 {
		return errors.New("it has no leader")
	}

	return nil
}

func (m *EtcdMember) leads(ctx context.Context) (bool, error) {
	status, err := m.status(ctx)
	if err != nil {
		return false, err
	}

	return status.Leader == status.Header.MemberId, nil
}

func (m *EtcdMember) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdRequestTimeout)
	defer cancel()

	client, err := m.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close() // nothing was written

	status, err := client.Status(ctx, "https://"+m.address)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its status: %w", m.spec.name, err)
	}

	return status, nil
}

// Client returns a new client of this member alone. Close it.
func (m *EtcdMember) Client() (*clientv3.Client, error) {
	secured, err := m.cluster.TLS()
	if err != nil {
		return nil, err
	}

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + m.address}, TLS: secured, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", m.spec.name, err)
	}

	return client, nil
}

// Address is where clients of the member connect, 127.0.0.1:port.
func (m *EtcdMember) Address() string { return m.address }
