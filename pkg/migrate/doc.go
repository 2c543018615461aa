// Package migrate moves a hub from the operator that serves omni.texashpc.com from custom resource definitions to this
// one, without a deletion reaching Omni.
//
//   - Convert is pure: one stored object of theirs becomes one of ours, or a list of what has to be changed first.
//   - Migration.Plan reads the hub and says what would be done. It writes nothing.
//   - Migration.Run does it in steps. Each step asks the hub whether it is done, so that a run that was killed is
//     finished by the next one. Everything that a step changes or removes is in the backup file before.
//   - Migration.Undo takes it back, until the definitions are deleted.
//
// The package is no controller and no part of one: the program that calls it is a tool for people.
package migrate
