package argocd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	lua "github.com/yuin/gopher-lua"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// Argo CD's words for the health of a resource; any other word of a script counts as Unknown.
const (
	// Healthy lets the next sync wave begin.
	Healthy = "Healthy"
	// Progressing keeps a sync waiting.
	Progressing = "Progressing"
	// Suspended keeps a sync waiting, too, and an application whose worst resource has it shows it.
	Suspended = "Suspended"
	// Degraded fails a sync.
	Degraded = "Degraded"
)

// scriptTimeout bounds a script. Argo CD gives it one second; a test may have to share the machine.
const scriptTimeout = 10 * time.Second

// Health is what a script says of an object.
type Health struct {
	Status  string
	Message string
}

// Script is a health script. The zero value does not run; use Load or NewScript.
type Script struct{ text string }

// NewScript makes a script of its Lua text.
func NewScript(text string) Script { return Script{text: text} }

// Load reads artifacts/argocd/health.lua.
func Load() (Script, error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return Script{}, err
	}

	text, err := os.ReadFile(filepath.Join(root, "artifacts", "argocd", "health.lua"))
	if err != nil {
		return Script{}, fmt.Errorf("read the health script: %w", err)
	}

	return Script{text: string(text)}, nil
}

// Run gives the object, as it is in the JSON of an unstructured object, to the script. It is an
// error if the script fails, does not end, or returns what Argo CD would not take.
func (s Script) Run(ctx context.Context, object map[string]any) (Health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()

	if err := openBasicLibraries(state); err != nil {
		return Health{}, err
	}

	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()

	state.SetContext(ctx)

	value, err := toLua(state, object)
	if err != nil {
		return Health{}, err
	}

	state.SetGlobal("obj", value)

	if err := state.DoString(s.text); err != nil {
		return Health{}, fmt.Errorf("run the health script: %w", err)
	}

	return fromLua(state.Get(-1))
}

// openBasicLibraries opens what Argo CD opens while useOpenLibs is off, but for a small part of
// os that nothing here needs.
func openBasicLibraries(state *lua.LState) error {
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return fmt.Errorf("open Lua library %q: %w", name, err)
		}
	}

	return nil
}

// toLua converts what JSON has.
func toLua(state *lua.LState, value any) (lua.LValue, error) {
	switch value := value.(type) {
	case nil:
		return lua.LNil, nil
	case bool:
		return lua.LBool(value), nil
	case string:
		return lua.LString(value), nil
	case int64:
		return lua.LNumber(value), nil
	case float64:
		return lua.LNumber(value), nil
	case []any:
		table := state.CreateTable(len(value), 0)

		for _, item := range value {
			converted, err := toLua(state, item)
			if err != nil {
				return nil, err
			}

			table.Append(converted)
		}

		return table, nil
	case map[string]any:
		table := state.CreateTable(0, len(value))

		for key, item := range value {
			converted, err := toLua(state, item)
			if err != nil {
				return nil, err
			}

			table.RawSetString(key, converted)
		}

		return table, nil
	default:
		return nil, fmt.Errorf("an object of JSON has no %T", value)
	}
}

func fromLua(value lua.LValue) (Health, error) {
	table, ok := value.(*lua.LTable)
	if !ok {
		return Health{}, fmt.Errorf("the health script returned a %s, not a table", value.Type())
	}

	health := Health{Status: lua.LVAsString(table.RawGetString("status")), Message: lua.LVAsString(table.RawGetString("message"))}

	switch health.Status {
	case Healthy, Progressing, Suspended, Degraded:
		return health, nil
	default:
		return health, fmt.Errorf("the health script returned the status %q", health.Status)
	}
}
