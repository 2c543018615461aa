package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the kernel puts what a filter of system calls looks at: struct seccomp_data.
const (
	offsetCall         = 0
	offsetArchitecture = 4
	offsetArgument     = 16 // the lower half of the first, on machines that begin with it
)

// otherTable is where the calls begin that programs of 32 bits have on amd64.
const otherTable = 0x40000000

// errNoFilter is wrapped by errors that say why there is no filter.
var errNoFilter = errors.New("no filter of system calls")

// filterCalls has the kernel refuse all threads, for ever, what a worker never does: open a file or a socket, start or
// look into another process or send it a signal. What is open stays open. It is beside the bounds that hold everywhere,
// so an error of errNoFilter may be ignored.
func filterCalls() error {
	architecture, more, err := platform()
	if err != nil {
		return err
	}

	code := program(architecture, append(more, refusedCalls()...))
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]} //nolint:gosec // some tens

	thread, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter))) //nolint:gosec // the kernel's interface
	runtime.KeepAlive(code)

	switch {
	case failed != 0:
		return fmt.Errorf("%w: the kernel says: %w", errNoFilter, failed)
	case thread != 0:
		return fmt.Errorf("%w: a thread has another", errNoFilter)
	default:
		return nil
	}
}

// platform is what a filter has to know of the machine: how the kernel calls it, and the calls that others do not have.
func platform() (architecture uint32, more []uint32, err error) {
	switch runtime.GOARCH {
	case "amd64":
		const open, fork, vfork, creat = 2, 57, 58, 85

		return unix.AUDIT_ARCH_X86_64, []uint32{open, fork, vfork, creat}, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil, nil
	default:
		return 0, nil, fmt.Errorf("%w: there is none for %s", errNoFilter, runtime.GOARCH)
	}
}

// refusedCalls are refused whatever their arguments are.
func refusedCalls() []uint32 {
	return []uint32{
		unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_MEMFD_CREATE,
		unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_IO_URING_SETUP,
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_CLONE3,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD,
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_BPF, unix.SYS_KEYCTL, unix.SYS_USERFAULTFD, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_CHROOT,
	}
}

// program is the filter. Two calls are allowed as the runtime needs them: it starts threads, and stops its own.
func program(architecture uint32, refused []uint32) []unix.SockFilter {
	code := []unix.SockFilter{
		loadWord(offsetArchitecture),
		jumpIf(unix.BPF_JEQ, architecture, 1, 0),
		end(unix.SECCOMP_RET_KILL_PROCESS),
		loadWord(offsetCall),
		jumpIf(unix.BPF_JGE, otherTable, 0, 1),
		end(refuse(unix.EPERM)),
	}

	for _, call := range refused {
		answer := refuse(unix.EPERM)
		if call == unix.SYS_CLONE3 {
			answer = refuse(unix.ENOSYS) // C libraries then use clone
		}

		code = append(code, jumpIf(unix.BPF_JEQ, call, 0, 1), end(answer))
	}

	return append(code,
		jumpIf(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4),
		loadWord(offsetArgument),
		jumpIf(unix.BPF_JSET, unix.CLONE_THREAD, 1, 0),
		end(refuse(unix.EPERM)),
		end(unix.SECCOMP_RET_ALLOW),

		jumpIf(unix.BPF_JEQ, unix.SYS_TGKILL, 0, 3),
		loadWord(offsetArgument),
		jumpIf(unix.BPF_JEQ, uint32(os.Getpid()), 1, 0), //nolint:gosec // positive
		end(refuse(unix.EPERM)),
		end(unix.SECCOMP_RET_ALLOW),
	)
}

func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jumpIf goes on so many instructions later.
func jumpIf(condition uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | condition | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func end(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

func refuse(with syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(with) } //nolint:gosec // a small number
