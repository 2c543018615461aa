package contract

import "testing"

// Run tests the target against the contract. Most cases hold for Omni 1.9 and all later versions; those that do not say
// since when, or until when, they hold. Cases create resources with unique names and leave service accounts
// behind.
func Run(t *testing.T, target Target) {
	s := &suite{target: target}
	s.admin = s.connect(t, target.ServiceAccountKey)
	s.findVersion(t)

	for name, test := range map[string]func(*testing.T){
		"keys":        s.keys,
		"keysInUse":   s.keysInUse,
		"roles":       s.roles,
		"codes":       s.codes,
		"served":      s.served,
		"disks":       s.installDisks,
		"clusters":    s.clusterRefusals,
		"updates":     s.updateRefusals,
		"upgrades":    s.partialUpgrades,
		"parts":       s.partRefusals,
		"locks":       s.locks,
		"sync":        s.sync,
		"moves":       s.moves,
		"quorum":      s.quorum,
		"delete":      s.deletion,
		"watches":     s.watches,
		"selections":  s.selections,
		"kubeconfigs": s.kubeconfigs,
		"proxy":       s.proxy,
		"collisions":  s.collisions,
		"independent": s.independent,
		"balancer":    s.balancer,
	} {
		t.Run(name, test)
	}
}
