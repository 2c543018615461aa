// Package omnimachine describes how the API server serves OmniMachines.
package omnimachine
