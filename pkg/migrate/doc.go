// Package migrate moves a hub to this operator from the operator that serves omni.texashpc.com with custom resource
// definitions, without any deletion reaching Omni.
//
//   - Convert is pure: it turns one stored object of the old operator into one of ours, or lists what the user has to
//     change first.
//   - Migration.Plan reads the hub and reports what Run would do. It writes nothing.
//   - Migration.Run does the migration in steps. Each step asks the hub whether it is done, so the next run finishes one
//     that was killed. Everything that a step changes or removes is in the backup file first.
//   - Migration.Undo reverses it, until the definitions are deleted.
//
// The package is no controller and no part of one: its callers are command-line tools.
package migrate
