package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"
)

// settings are the sizes of a run. Every size can be set by a flag; -smoke chooses sizes that only
// show that everything works, in a minute or two.
type settings struct {
	// Parts are the letters of the parts to run.
	Parts string `json:"parts"`
	// Clients work at the same time on Objects objects, for Rounds rounds.
	Clients int `json:"clients"`
	Objects int `json:"objects"`
	Rounds  int `json:"rounds"`
	// Lists is how often one client lists all objects in a round; ConcurrentLists is how often
	// all clients together do.
	Lists           int `json:"lists"`
	ConcurrentLists int `json:"concurrentLists"`
	// Samples is the number of latencies measured of each kind and fleet size.
	Samples int `json:"samples"`
	// Few and Many are the numbers of clusters.
	Few  int `json:"few"`
	Many int `json:"many"`
	// Connections are the simulated Omnis that the clusters are dealt out to; Spare machines of them are in no cluster.
	Connections int `json:"connections"`
	Spare       int `json:"spare"`
	// OmniQPS is the controller's --omni-qps; 0: its default.
	OmniQPS int `json:"omniQPS,omitempty"`
	// ControllerArgs and APIServerArgs are further flags of the two programs, separated by spaces: a fleet beyond the
	// default limits needs some.
	ControllerArgs string `json:"controllerArgs,omitempty"`
	APIServerArgs  string `json:"apiServerArgs,omitempty"`
	// IdleWindow is how long requests of an idle fleet are counted, Settle how long the load's
	// memory may take to be given back.
	IdleWindow time.Duration `json:"idleWindow"`
	Settle     time.Duration `json:"settle"`
	// Traffic is how long the clusters' status changes all the time.
	Traffic time.Duration `json:"traffic"`
	// CRDRest is how long the hub's controllers may take to find the CRD before it is measured.
	CRDRest time.Duration `json:"crdRest"`
	// HubFsync lets the hub's etcd sync to disk as ours does.
	HubFsync bool `json:"hubFsync"`
	// Stored is the number of objects that the API server is started with.
	Stored int `json:"stored"`
	// Releases are installed in Workloads clusters by each side, ReleaseRounds times; each is
	// checked again at every ReleaseInterval, which is watched for ReleaseWindow.
	Releases        int           `json:"releases"`
	Workloads       int           `json:"workloads"`
	ReleaseRounds   int           `json:"releaseRounds"`
	ReleaseInterval time.Duration `json:"releaseInterval"`
	ReleaseWindow   time.Duration `json:"releaseWindow"`

	// out is the directory for the report, dir that of the stack (empty: a temporary one).
	out, dir string
	// profiles collects CPU and heap profiles into out.
	profiles bool

	// plot is a directory: nothing is measured, and the results in the files inputs are drawn into it.
	plot   string
	inputs []string
}

// The parts, by their letters: see partTitles.
const (
	partAPIs     = "a"
	partLatency  = "b"
	partIdle     = "c"
	partGrowth   = "d"
	partRestarts = "e"
	partMemory   = "f"
	partReleases = "g"
	partObjects  = "h"
	partRollout  = "i"
	partStorm    = "j"
	partTraffic  = "k"

	// largeParts need a fleet of both sizes, smallParts one.
	largeParts = partIdle + partRestarts + partMemory + partRollout + partStorm + partTraffic
	smallParts = largeParts + partLatency + partGrowth
	allParts   = partAPIs + partLatency + partIdle + partGrowth + partRestarts + partMemory + partReleases + partObjects + partRollout + partStorm + partTraffic
	// smokeParts leaves out what has to build Flux first.
	smokeParts = partAPIs + partLatency + partIdle + partGrowth + partRestarts + partMemory + partObjects + partRollout + partStorm + partTraffic
)

const (
	// shortestInterval is the shortest that an OmniHelmRelease may have.
	shortestInterval = 30 * time.Second
)

func fullSettings() settings {
	return settings{
		Parts: allParts, Clients: 32, Objects: 2000, Rounds: 3, Lists: 10, ConcurrentLists: 64, Samples: 100,
		Few: 100, Many: 1000, Connections: 1, IdleWindow: time.Minute, Settle: 2 * time.Minute, Traffic: 10 * time.Minute, CRDRest: 40 * time.Second, HubFsync: true,
		Stored: 10000, Releases: 100, Workloads: 4, ReleaseRounds: 2, ReleaseInterval: time.Minute, ReleaseWindow: 5 * time.Minute,
	}
}

func smokeSettings() settings {
	return settings{
		Parts: smokeParts, Clients: 8, Objects: 60, Rounds: 1, Lists: 3, ConcurrentLists: 8, Samples: 5,
		Few: 5, Many: 15, Connections: 2, Spare: 3, IdleWindow: 3 * time.Second, Settle: 2 * time.Second, Traffic: 5 * time.Second, CRDRest: time.Second, HubFsync: true,
		Stored: 50, Releases: 8, Workloads: 2, ReleaseRounds: 2, ReleaseInterval: shortestInterval, ReleaseWindow: 35 * time.Second,
	}
}

// parseSettings reads the flags. -smoke only changes defaults: sizes given beside it count.
func parseSettings(args []string) (settings, error) {
	s := fullSettings()

	for _, arg := range args {
		if arg == "-smoke" || arg == "--smoke" {
			s = smokeSettings()
		}
	}

	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Bool("smoke", false, "small sizes: shows in a minute or two that everything works")
	flags.StringVar(&s.Parts, "parts", s.Parts, "the parts to run: a API against CRD, b latency, c idle requests, d new clusters, e restarts, f memory, g Helm releases next to Flux, h the API server with many objects, i a rollout, j a storm, k lasting status traffic")
	flags.IntVar(&s.Clients, "clients", s.Clients, "(a) clients at the same time")
	flags.IntVar(&s.Objects, "objects", s.Objects, "(a) objects")
	flags.IntVar(&s.Rounds, "rounds", s.Rounds, "(a) rounds; the report has the median of their ratios")
	flags.IntVar(&s.Lists, "lists", s.Lists, "(a) lists of all objects by one client, per round")
	flags.IntVar(&s.ConcurrentLists, "concurrent-lists", s.ConcurrentLists, "(a) lists of all objects by all clients together, per round; 0: none")
	flags.IntVar(&s.Samples, "samples", s.Samples, "(b) samples of each latency")
	flags.IntVar(&s.Few, "few", s.Few, "clusters in a small fleet")
	flags.IntVar(&s.Many, "many", s.Many, "clusters in a large fleet")
	flags.IntVar(&s.Connections, "connections", s.Connections, "connections, each to a simulated Omni, that the clusters are dealt out to")
	flags.IntVar(&s.Spare, "spare", s.Spare, "machines in the simulated Omnis that no cluster uses")
	flags.IntVar(&s.OmniQPS, "omni-qps", s.OmniQPS, "calls per second that the controller may send to Omni; 0: the controller's default")
	flags.StringVar(&s.ControllerArgs, "controller-args", s.ControllerArgs, "further flags of omni-controller, separated by spaces")
	flags.StringVar(&s.APIServerArgs, "apiserver-args", s.APIServerArgs, "further flags of omni-apiserver, separated by spaces")
	flags.DurationVar(&s.IdleWindow, "idle", s.IdleWindow, "(c, i) how long requests are counted")
	flags.DurationVar(&s.Settle, "settle", s.Settle, "(f) rest before the memory of a settled fleet is read")
	flags.DurationVar(&s.Traffic, "traffic", s.Traffic, "(k) how long the clusters' status changes all the time")
	flags.DurationVar(&s.CRDRest, "crd-rest", s.CRDRest, "(a) rest between making the CRD and measuring")
	flags.BoolVar(&s.HubFsync, "hub-fsync", s.HubFsync, "(a) let the hub's etcd sync writes to disk, as ours always does")
	flags.IntVar(&s.Stored, "stored", s.Stored, "(h) objects that the API server is started with")
	flags.IntVar(&s.Releases, "releases", s.Releases, "(g) Helm releases of each side")
	flags.IntVar(&s.Workloads, "workloads", s.Workloads, "(g) workload clusters, real control planes of 350 MB each")
	flags.IntVar(&s.ReleaseRounds, "release-rounds", s.ReleaseRounds, "(g) rounds of installing all; the sides take turns in going first")
	flags.DurationVar(&s.ReleaseInterval, "release-interval", s.ReleaseInterval, "(g) how often a release is checked again")
	flags.DurationVar(&s.ReleaseWindow, "release-window", s.ReleaseWindow, "(g) how long the checks of idle releases are watched")
	flags.StringVar(&s.out, "out", "", "directory for bench.md, bench.json, bench.txt and the plots")
	flags.StringVar(&s.dir, "dir", "", "directory of the stack, kept afterwards. Default: a temporary one. Both etcds are in it, so on one disk")
	flags.BoolVar(&s.profiles, "profiles", false, "write CPU and heap profiles into -out; profiling costs a little of what is measured")

	flags.StringVar(&s.plot, "plot", "", "measure nothing: draw plots into this directory, out of the bench.json files named after the flags. Of a figure that is in two of them the later counts")

	if err := flags.Parse(args); err != nil {
		return s, err
	}

	s.inputs = flags.Args()

	return s, s.validate()
}

func (s settings) validate() error {
	var problems []error

	for _, part := range s.Parts {
		if !strings.ContainsRune(allParts, part) {
			problems = append(problems, fmt.Errorf("-parts: %q is none of %s", part, allParts))
		}
	}

	for name, size := range map[string]int{
		"clients": s.Clients, "objects": s.Objects, "rounds": s.Rounds, "lists": s.Lists, "samples": s.Samples, "few": s.Few, "stored": s.Stored,
		"connections": s.Connections, "releases": s.Releases, "workloads": s.Workloads, "release-rounds": s.ReleaseRounds,
	} {
		if size < 1 {
			problems = append(problems, fmt.Errorf("-%s: %d is less than 1", name, size))
		}
	}

	if s.ConcurrentLists < 0 {
		problems = append(problems, errors.New("-concurrent-lists must not be negative"))
	}

	if s.Spare < 0 {
		problems = append(problems, errors.New("-spare must not be negative"))
	}

	if s.OmniQPS < 0 {
		problems = append(problems, errors.New("-omni-qps must not be negative"))
	}

	if s.Many < s.Few {
		problems = append(problems, errors.New("-many must not be less than -few"))
	}

	if s.IdleWindow <= 0 || s.Settle < 0 {
		problems = append(problems, errors.New("-idle must be positive and -settle not negative"))
	}

	if s.Traffic < time.Second {
		problems = append(problems, errors.New("-traffic must be at least 1s"))
	}

	if s.ReleaseInterval < shortestInterval || s.ReleaseWindow <= 0 {
		problems = append(problems, fmt.Errorf("-release-interval must be at least %s and -release-window positive", shortestInterval))
	}

	if s.profiles && s.out == "" {
		problems = append(problems, errors.New("-profiles needs -out"))
	}

	if (s.plot == "") != (len(s.inputs) == 0) {
		problems = append(problems, errors.New("-plot needs files, and files need -plot"))
	}

	return errors.Join(problems...)
}

// runs reports whether a part is wanted.
func (s settings) runs(part string) bool { return strings.Contains(s.Parts, part) }

// describe is the settings in a sentence or two.
func (s settings) describe() string {
	fsync := "The hub's etcd syncs each write to disk, as ours does, on the same disk."
	if !s.HubFsync {
		fsync = "The hub's etcd does not sync to disk and ours does: the writes of (a) are unfair to us."
	}

	text := fmt.Sprintf("Priority and fairness and audit (level Metadata) are on in both API servers. %s "+
		"(a): %d clients, %d objects, %d rounds, the two sides in turn. (b): %d samples.", fsync, s.Clients, s.Objects, s.Rounds, s.Samples)
	if s.OmniQPS > 0 {
		text += fmt.Sprintf(" omni-controller may send %d calls per second to Omni.", s.OmniQPS)
	}

	if s.runs(partReleases) {
		text += " " + s.describeReleases()
	}

	return text
}

// describeReleases says what a reader of part (g) has to know.
func (s settings) describeReleases() string {
	return fmt.Sprintf("(g): %d releases on each side over %d workload clusters, %d rounds, checked again every %s; "+
		"Flux's helm-controller is built with upstream Helm v4.2.4 in place of Flux's fork of it.",
		s.Releases, s.Workloads, s.ReleaseRounds, s.ReleaseInterval)
}
