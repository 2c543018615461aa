// Package durability tests what outlives the processes it lives in: acknowledged writes when omni-apiserver or an etcd
// member is killed, and requests when replicas are restarted one after another. It starts hubs of its own, without
// controllers. Other tests run beside it: what a machine that stalls can break is tried again.
//
// The tests take few kills; `make e2e-durability` takes 100, and any number and seed can be asked for.
package durability
