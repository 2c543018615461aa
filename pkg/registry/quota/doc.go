// Package quota bounds how much is stored over all kinds, per namespace and in total. A Ledger follows every kind by
// a watch, so that each replica counts what the others write. It also reserves room for the writes in progress on its
// own replica.
package quota
