// Package window says when a change may begin: in weekly windows of a time zone, and never during a freeze. It is pure:
// it has no clock of its own, and the same question has the same answer.
//
// Windows say when something may begin, not when it ends. Those of one Calendar are joined: where one ends while another
// is open, nothing closes.
package window
