package omnisim

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
)

// Machine describes a machine that connects. The zero value is a wiped machine with a random ID and the newest Talos of
// the catalogue.
type Machine struct {
	// ID is the machine's UUID. Default: a random one.
	ID string
	// TalosVersion is the version that the machine booted, without a leading v. Default: the catalogue's last.
	TalosVersion string
	// Installed means that Talos is on the machine's disk, so that clusters with newer minor versions accept the machine
	// and upgrade it.
	Installed bool
	// Labels are the machine's labels in Omni, which machine classes select.
	Labels map[string]string
}

// AddMachines connects n default machines and returns their IDs.
func (s *Server) AddMachines(n int) ([]string, error) {
	ids := make([]string, 0, n)

	for range n {
		id, err := s.AddMachine(Machine{})
		if err != nil {
			return ids, err
		}

		ids = append(ids, id)
	}

	return ids, nil
}

// AddMachine connects one machine and returns its ID.
func (s *Server) AddMachine(machine Machine) (string, error) {
	if machine.ID == "" {
		machine.ID = uuid.NewString()
	}

	if machine.TalosVersion == "" {
		machine.TalosVersion = s.options.Catalogue.Talos[len(s.options.Catalogue.Talos)-1]
	}

	return machine.ID, s.engine.connect(context.Background(), machine)
}

// connect connects a machine.
func (e *engine) connect(ctx context.Context, machine Machine) error {
	hardware := omni.NewMachineStatus(machine.ID)
	describe(hardware, machine)

	known := omni.NewMachine(machine.ID)
	known.TypedSpec().Value.ManagementAddress, known.TypedSpec().Value.Connected = hardware.TypedSpec().Value.ManagementAddress, true

	if err := e.state.Create(ctx, known, state.WithCreateOwner(machineController)); err != nil {
		return fmt.Errorf("create machine: %w", err)
	}

	if err := e.state.Create(ctx, hardware, state.WithCreateOwner(machineStatusController)); err != nil {
		return fmt.Errorf("create machine status: %w", err)
	}

	if err := e.copyLabels(ctx, hardware); err != nil {
		return fmt.Errorf("copy machine labels: %w", err)
	}

	link := siderolink.NewLink(machine.ID, &specs.SiderolinkSpec{Connected: true})
	link.Metadata().Finalizers().Add(machineController)

	if err := e.state.Create(ctx, link); err != nil {
		return fmt.Errorf("create link: %w", err)
	}

	return nil
}

// describe sets the status of a machine that has just connected.
func describe(hardware *omni.MachineStatus, machine Machine) {
	version := "v" + strings.TrimPrefix(machine.TalosVersion, "v")
	hardware.TypedSpec().Value = &specs.MachineStatusSpec{
		TalosVersion:        version,
		InitialTalosVersion: version,
		Connected:           true,
		Maintenance:         true,
		ManagementAddress:   "fdae:41e4:649b:9303::" + machine.ID[:min(4, len(machine.ID))],
		PowerState:          specs.MachineStatusSpec_POWER_STATE_ON,
		Network:             &specs.MachineStatusSpec_NetworkStatus{Hostname: hostname(machine.ID)},
		Hardware: &specs.MachineStatusSpec_HardwareStatus{
			Arch:         "amd64",
			Blockdevices: []*specs.MachineStatusSpec_HardwareStatus_BlockDevice{{LinuxName: "/dev/sda", Size: 64 << 30, Type: "SSD"}},
		},
		Schematic: &specs.MachineStatusSpec_Schematic{},
	}

	labels := hardware.Metadata().Labels()
	labels.Set(omni.MachineStatusLabelAvailable, "")
	labels.Set(omni.MachineStatusLabelConnected, "")
	labels.Set(omni.MachineStatusLabelReadyToUse, "")
	labels.Set(omni.MachineStatusLabelReportingEvents, "")
	labels.Set(omni.MachineStatusLabelArch, "amd64")
	labels.Set(omni.MachineStatusLabelTalosVersion, version)

	for key, value := range machine.Labels {
		labels.Set(key, value)
	}

	if machine.Installed {
		installDisk(hardware)
	}
}

// installDisk marks Talos as installed.
func installDisk(hardware *omni.MachineStatus) {
	hardware.Metadata().Labels().Set(omni.MachineStatusLabelInstalled, "")

	if devices := hardware.TypedSpec().Value.GetHardware().GetBlockdevices(); len(devices) > 0 {
		devices[0].SystemDisk = true
	}
}

// AddMachineClass creates a machine class that selects by label terms such as "site = a".
func (s *Server) AddMachineClass(name string, matchLabels ...string) error {
	class := omni.NewMachineClass(name)
	class.TypedSpec().Value.MatchLabels = matchLabels

	if err := s.State().Create(context.Background(), class); err != nil {
		return fmt.Errorf("create machine class: %w", err)
	}

	return nil
}

// KillMachine makes a machine fall silent. Nothing shows it for five phases; after that Omni reports the machine as
// disconnected. A cluster with that machine cannot be deleted until the machine is revived or its link is destroyed.
func (s *Server) KillMachine(id string) {
	s.engine.call(func(ctx context.Context) {
		s.engine.dead[id] = s.engine.now
		s.engine.machines = true
		s.engine.wake(ctx, id)
	})
}

// ShutDownMachine makes a machine fall silent as KillMachine does, but tell Omni before. Omni knows it as powered off then, and
// never gives it the label of a disconnected one.
func (s *Server) ShutDownMachine(id string) {
	s.engine.call(func(context.Context) { s.engine.shutDown[id] = true })
	s.KillMachine(id)
}

// RefuseConfiguration makes a machine refuse each new configuration with an error, until the text is empty. It runs on with the
// one it has, Omni shows the error, and the machine's set goes on reconfiguring.
func (s *Server) RefuseConfiguration(id, text string) {
	s.engine.call(func(ctx context.Context) {
		s.engine.refusing[id] = text
		s.engine.wake(ctx, id)
	})
}

// ReviveMachine brings back a machine that KillMachine or ShutDownMachine silenced.
func (s *Server) ReviveMachine(id string) error {
	var err error

	s.engine.call(func(ctx context.Context) {
		delete(s.engine.dead, id)
		delete(s.engine.shutDown, id)
		err = s.engine.setConnected(ctx, id, true)
		s.engine.wake(ctx, id)
		s.engine.pass(ctx)
	})

	return err
}
