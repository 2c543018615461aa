// Package quota bounds how much is stored, per namespace and in all, over all kinds. A Ledger follows every kind by a
// watch, so that each replica knows what the others write, and holds room for what this one is writing.
package quota
