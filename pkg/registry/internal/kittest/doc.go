// Package kittest tests a descriptor through the registry kit: the generic API server's own suite for
// create, update, delete, get, list and watch, and every rule that the kit promises for all kinds. One
// call per kind, against a real etcd.
package kittest
